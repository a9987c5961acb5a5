FROM a AS 9b
RUN after
