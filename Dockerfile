# docker build -t waitlist .
# docker run --init --read-only --tmpfs /tmp -v waitlist:/data -p 127.0.0.1:8080:8080 --name waitlist waitlist
# docker exec waitlist waitlist stats
#
# The official slim image, not a distroless one: its tag names one release of Node, and so of SQLite, and it has a shell, in
# which you can look after the list.

# The digest is that of the index of all architectures.
FROM node:26.10.0-trixie-slim@sha256:ec7758ee051e457b468b32bde57b0879010b325bb9862718e9615225ce4aaae1 AS node

FROM node AS build
WORKDIR /waitlist
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && mkdir --mode=700 data

FROM node
LABEL org.opencontainers.image.title="Waitlist" \
      org.opencontainers.image.description="A self-hosted early-access waitlist service that never loses a signup." \
      org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    DATABASE_URL=sqlite:/data/waitlist.db
WORKDIR /waitlist
RUN ln -s /waitlist/deploy/entrypoint.js /usr/local/bin/waitlist
COPY --from=build /waitlist/node_modules node_modules
COPY package.json LICENSE ./
COPY deploy/entrypoint.js deploy/health.js deploy/
COPY bin bin
COPY src src
COPY examples/messages examples/messages
# A new volume takes over owner and mode. There is no VOLUME, which would hide that `-v` was forgotten: each container would
# get a volume without a name. The program warns instead.
COPY --from=build --chown=1000:1000 /waitlist/data /data
# Where backups and exports go.
WORKDIR /data
# There is no USER: the entry point becomes user 1000 by itself, since a volume may belong to root. `--user 1000:1000` is
# for hosts whose volumes do not.
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["node", "/waitlist/deploy/health.js"]
# By itself V8 lets garbage grow to several times what is in use.
ENTRYPOINT ["node", "--max-semi-space-size=8", "--heap-growing-percent=20", "/waitlist/deploy/entrypoint.js"]
CMD ["serve"]
