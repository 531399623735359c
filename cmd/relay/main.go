// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command relay is the sidecar of a generation pod: it takes the parts of the attempts from the generator over a unix
// socket, and serves them to gateways. It outlives a crash of the generator.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"parley.dev/parley/internal/relay"
	"parley.dev/parley/internal/telemetry"
)

const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

type config struct {
	socket, listen, markerDir, metrics   string
	issuer, audience, jwksURL, ca, token string
	subjects                             []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := os.MkdirAll(filepath.Dir(c.socket), 0o770); err != nil {
		return fmt.Errorf("make the directory of the socket: %w", err)
	}
	store, err := relay.NewStore(relay.Options{MarkerDir: c.markerDir})
	if err != nil {
		return err
	}
	registry := telemetry.NewRegistry()
	telemetry.RegisterRelay(registry, store.Dropped, store.Size)
	if err := telemetry.Serve(ctx, c.metrics, registry); err != nil {
		return err
	}
	local, err := relay.ListenLocal(c.socket)
	if err != nil {
		return err
	}
	public, err := net.Listen("tcp", c.listen)
	if err != nil {
		return errors.Join(fmt.Errorf("listen for gateways: %w", err), local.Close())
	}
	verifier := &relay.TokenVerifier{
		Issuer: c.issuer, Audience: c.audience, Subjects: c.subjects,
		Keys: &relay.KeySource{URL: c.jwksURL, CAFile: c.ca, TokenFile: c.token, Log: log},
	}
	server := &relay.Server{Reader: &relay.Reader{Store: store, Authorizer: verifier}, Local: local, Public: public, Log: log}
	return server.Run(ctx)
}

func parse(args []string) (config, error) {
	var c config
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	flags.StringVar(&c.socket, "socket", "/run/parley/relay.sock", "unix socket for the generator")
	flags.StringVar(&c.listen, "listen", ":7070", "address for gateways")
	flags.StringVar(&c.metrics, "metrics-address", ":7071", "where to serve Prometheus metrics; 0: nowhere")
	flags.StringVar(&c.markerDir, "marker-dir", "/run/parley/episodes", "directory that remembers which attempts were begun")
	flags.StringVar(&c.issuer, "issuer", "https://kubernetes.default.svc.cluster.local", "issuer of the cluster's service-account tokens")
	flags.StringVar(&c.audience, "audience", "parley-relay", "audience that a gateway's token must be meant for")
	flags.Func("allow-subject", "subject that may read, such as system:serviceaccount:parley-system:parley-gateway (required; repeat it or separate by commas)", func(s string) error {
		c.subjects = append(c.subjects, strings.Split(s, ",")...)
		return nil
	})
	flags.StringVar(&c.jwksURL, "jwks-url", defaultJWKSURL(), "where the issuer's keys are")
	flags.StringVar(&c.ca, "ca-file", serviceAccountDir+"/ca.crt", "CA of --jwks-url; empty for those of the system")
	flags.StringVar(&c.token, "token-file", serviceAccountDir+"/token", "bearer token for --jwks-url; empty for none")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if len(c.subjects) == 0 {
		return c, errors.New("--allow-subject is required: without it nobody could read")
	}
	return c, nil
}

// defaultJWKSURL names the API server by address where it can, because a pod need not have DNS.
func defaultJWKSURL() string {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return "https://kubernetes.default.svc/openid/v1/jwks"
	}
	return "https://" + net.JoinHostPort(host, port) + "/openid/v1/jwks"
}
