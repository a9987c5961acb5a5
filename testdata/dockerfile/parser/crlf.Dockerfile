# escape=`
FROM scratch

# comment
RUN a `
  # inside

  b
RUN <<EOF
c
EOF
ENV d=e f="g h"
