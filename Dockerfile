# The service as a container: slim, without root, with a health check.
#   docker build -t likeminds .
#   docker run -p 8000:8000 -v "$PWD/models:/data" likeminds \
#       serve /data/shoes.likeminds --host 0.0.0.0 --workers 2
# Listening beyond the container takes a key (likeminds keys /data/shoes.likeminds --add read) or
# --visitors.
FROM python:3.12-slim AS build
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/likeminds \
    && /opt/likeminds/bin/pip install --no-cache-dir --constraint constraints.txt ".[serve,postgres]"

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /data --create-home likeminds
COPY --from=build /opt/likeminds /opt/likeminds
ENV PATH=/opt/likeminds/bin:$PATH PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
USER likeminds
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["likeminds"]
CMD ["serve", "--demo"]
