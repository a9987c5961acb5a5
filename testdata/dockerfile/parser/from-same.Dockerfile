FROM a AS b
FROM b AS b
