FROM a AS b # comment
RUN after
