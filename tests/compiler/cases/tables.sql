-- The sources of every case. No table has a key: every row may have copies.
CREATE TABLE orders (id INT, customer INT, amount INT);
CREATE TABLE customers (id INT, region STRING);
CREATE TABLE regions (name STRING, country STRING);
CREATE TABLE sales (product STRING, price DECIMAL(10, 2), mass DOUBLE, sold DATE, paid BOOLEAN);
CREATE TABLE ledger (account BIGINT, total DECIMAL(38, 4), note STRING);
CREATE TABLE odd (`Order` INT, `a.b` INT, `two words` STRING, `UPPER` INT);
CREATE TABLE visits (id INT, happened TIMESTAMP, tags ARRAY<INT>, place STRUCT<x: INT, y: STRING>);
