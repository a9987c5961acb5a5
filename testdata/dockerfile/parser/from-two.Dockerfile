FROM a b
RUN after
