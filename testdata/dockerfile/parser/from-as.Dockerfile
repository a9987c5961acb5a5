FROM a AS
RUN after
