# One image holds every program of Parley; the manifests say which one a container runs.
FROM golang:1.26.6 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY controllers controllers
COPY internal internal
# grpcnotrace halves the generator: without it the linker keeps every method of every type.
RUN CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags='-s -w' -o /out/ \
    ./cmd/manager ./cmd/generator ./cmd/relay ./cmd/gateway

FROM gcr.io/distroless/static:nonroot
COPY --from=build /out/ /
USER 65532:65532
