FROM scratch
RUN
CMD
ENTRYPOINT
RUN --network=host
