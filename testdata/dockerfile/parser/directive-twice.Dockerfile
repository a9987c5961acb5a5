# syntax=a
# syntax=b
FROM scratch
