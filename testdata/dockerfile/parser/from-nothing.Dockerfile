FROM
RUN after
