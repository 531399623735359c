# One image holds every program of Parley; the manifests say which one a container runs.
#
# Tags can be moved by whoever owns them. For a build that can be repeated, name the images by their digests, as
# "docker buildx imagetools inspect <image>" tells them: --build-arg BUILD_IMAGE=golang:1.27.4@sha256:... and so on.
ARG BUILD_IMAGE=golang:1.27.4
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot
FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY client client
COPY cmd cmd
COPY config config
COPY controllers controllers
COPY internal internal
# grpcnotrace halves the generator: without it the linker keeps every method of every type.
RUN CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags='-s -w' -o /out/ \
    ./cmd/manager ./cmd/generator ./cmd/relay ./cmd/gateway ./cmd/workspace-agent

FROM build AS build-scripted-model
COPY test/modelserver test/modelserver
COPY test/scripted-model test/scripted-model
RUN CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags='-s -w' -o /out/ ./test/scripted-model

# For demos and tests: --target scripted-model adds a model that answers from a script.
FROM ${BASE_IMAGE} AS scripted-model
COPY --from=build-scripted-model /out/ /
USER 65532:65532

FROM ${BASE_IMAGE}
COPY --from=build /out/ /
USER 65532:65532
