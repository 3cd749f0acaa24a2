"""The operators of the algebra, by the form of their delta rule: schema, rule, SQL, explanation."""
