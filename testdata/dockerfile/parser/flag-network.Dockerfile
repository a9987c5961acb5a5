FROM scratch
RUN --network=bridge a
RUN after
