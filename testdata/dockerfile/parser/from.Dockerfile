FROM a
FROM a AS b
from a as c
FROM a As b-c_d.9
FROM \
  a \
  AS f
