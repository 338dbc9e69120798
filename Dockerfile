# Three stages: node builds the web interface, Rust and npm build the server, and the image that runs has none of them. The build downloads and
# checks the embedded ClickHouse library.
FROM node:20-bookworm-slim AS web
WORKDIR /src/dashboards/web
COPY dashboards/web/package.json dashboards/web/package-lock.json dashboards/web/.npmrc ./
RUN npm ci
COPY server/openapi.json /src/server/openapi.json
COPY dashboards/web ./
RUN npm run build

FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends cmake nodejs npm && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
COPY --from=web /src/dashboards/web/dist dashboards/web/dist
RUN cargo build --release --locked -p unjank-server --bin unjank
# Set to empty to leave out the library, for an image that only uses a ClickHouse server.
ARG EMBEDDED=1
RUN mkdir -p /out/engine && if [ -n "$EMBEDDED" ]; then target/release/unjank engine --fetch-only --cache-dir /out/engine; fi

FROM debian:trixie-slim
# For `unjank backup`, the client of PostgreSQL must be at least as new as the server in docker-compose.yml.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libstdc++6 postgresql-client-17 && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/unjank unjank \
    # Empty, because a restore needs an empty folder: --create-home would copy files into it.
    && install -d -o unjank -m 700 /var/lib/unjank
COPY --from=build /src/target/release/unjank /usr/local/bin/unjank
COPY --from=build --chown=unjank /out/engine /usr/local/lib/unjank
USER unjank
ENV UNJANK_DATA_DIR=/var/lib/unjank \
    UNJANK_CACHE_DIR=/usr/local/lib/unjank \
    UNJANK_LISTEN=0.0.0.0:8080 \
    UNJANK_ADMIN_LISTEN=0.0.0.0:9090
VOLUME /var/lib/unjank
EXPOSE 8080 9090
HEALTHCHECK --interval=10s --timeout=12s --start-period=60s CMD ["unjank", "healthcheck", "--address", "127.0.0.1:9090"]
ENTRYPOINT ["unjank"]
CMD ["serve"]
