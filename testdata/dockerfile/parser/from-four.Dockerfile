FROM a AS b c
RUN after
