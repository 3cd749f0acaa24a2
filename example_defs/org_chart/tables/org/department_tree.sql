-- dialect: postgres
-- description: Every department, with the way to it from the root.
WITH RECURSIVE tree AS (
  SELECT id, name, parent_id, name AS path, 0 AS depth
  FROM hr.departments
  WHERE parent_id IS NULL
  UNION ALL
  SELECT
    below.id,
    below.name,
    below.parent_id,
    tree.path || ' > ' || below.name AS path,
    tree.depth + 1 AS depth
  FROM hr.departments AS below
  JOIN tree ON below.parent_id = tree.id
)
SELECT id, name, parent_id, path, depth FROM tree
