FROM scratch
COPY ["a"]
RUN after
