FROM scratch
# Kommentar: ä ö ü
LABEL beschreibung="Größe in µm" 名前=値
RUN echo “curly” … 'é'
COPY é ü/
ENV A=b C=d
RUN　a
