FROM scratch
RUN e \\
RUN f\\\
RUN g
