FROM scratch
RUN --mont=type=cache a
RUN after
