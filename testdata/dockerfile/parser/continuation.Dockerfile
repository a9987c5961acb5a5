FROM scratch
RUN a \
# a comment

    # another, indented

    b \   	
    c\
d
RUN g \
   \
  \
  h
  RUN indented
\
RUN behind a lone continuation
LABEL a=\
b c=d\
e
EN\
V x=y
