// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command relay is a sidecar of the generator: it receives the parts of attempts over a unix socket, and serves them to
// gateways. It survives a crash of the generator, and ends after it.
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
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/internal/stream/lifetime"
	"parley.dev/parley/internal/stream/relay"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/text/version"
)

type config struct {
	socket, listen, markerDir, metrics string
	profiling                          bool
	issuer, keys, namespace, podUID    string
	generatorLock                      string
	subjects                           []string
}

func main() {
	_, _ = memlimit.Set() // Nine tenths of the container's memory limit; without one there is none.
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
	log := slog.New(slog.NewJSONHandler(printable.JSONWriter(os.Stderr), nil))
	if err := os.MkdirAll(filepath.Dir(c.socket), 0o770); err != nil {
		return fmt.Errorf("making the directory of the socket: %w", err)
	}
	store, err := relay.NewStore(relay.Options{MarkerDir: c.markerDir, Now: time.Now})
	if err != nil {
		return err
	}
	registry := telemetry.NewRegistry()
	keys := &relay.IssuerKeys{File: c.keys, Now: time.Now}
	reader := &relay.Subscribers{Store: store, Authorizer: &satoken.Verifier{
		Issuer: c.issuer, Audience: relay.Audience(c.namespace, c.podUID), Subjects: c.subjects, Keys: keys,
		Now: time.Now,
	}}
	telemetry.RegisterRelay(registry, telemetry.Relay{Dropped: store.Dropped, Held: store.Size, Streams: reader.Streams,
		Refused: reader.Refused})
	if err := telemetry.Serve(ctx, c.metrics, registry, c.profiling); err != nil {
		return err
	}
	local, err := relay.ListenLocal(c.socket)
	if err != nil {
		return err
	}
	public, err := net.Listen("tcp", c.listen)
	if err != nil {
		return errors.Join(fmt.Errorf("listening for gateways: %w", err), local.Close())
	}
	server := &relay.Server{Subscribers: reader, Keys: keys, Local: local, Public: public, Log: log}
	return server.Run(outlive(ctx, c.generatorLock, log))
}

// outlive returns a context that is done once ctx is and the generator has ended, which ends its attempts first, or
// after another signal. The kubelet signals both at once.
func outlive(ctx context.Context, generatorLock string, log *slog.Logger) context.Context {
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		defer end()
		again, stop := signal.NotifyContext(serving, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		if err := lifetime.AwaitEnd(again, generatorLock); err != nil && again.Err() == nil {
			log.WarnContext(serving, "nothing is known of the generator: ending before it", slog.Any("error", err))
		}
	})
	return serving
}

func parse(args []string) (config, error) {
	var c config
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	version.AddFlag(flags, "relay")
	flags.StringVar(&c.socket, "socket", "/run/parley/relay.sock", "unix socket for the generator")
	flags.StringVar(&c.generatorLock, "generator-lock", "/run/parley/generator.lock",
		"file that the generator locks while it lives: this program ends after it")
	flags.StringVar(&c.listen, "listen", ":7070", "address for gateways")
	flags.StringVar(&c.metrics, "metrics-address", ":7071", "where to serve Prometheus metrics; 0: nowhere")
	flags.BoolVar(&c.profiling, "profiling", false, "serve profiles of this program at the metrics address")
	flags.StringVar(&c.markerDir, "marker-dir", "/run/parley/episodes",
		"directory that remembers which attempts were begun")
	flags.StringVar(&c.issuer, "issuer", "https://kubernetes.default.svc.cluster.local",
		"issuer of the cluster's service-account tokens")
	flags.StringVar(&c.keys, "issuer-keys", "/run/parley/issuer-keys.json",
		"file that keeps the issuer's keys, which the generator brings")
	flags.StringVar(&c.namespace, "pod-namespace", os.Getenv("POD_NAMESPACE"),
		"namespace of this pod; default: $POD_NAMESPACE")
	flags.StringVar(&c.podUID, "pod-uid", os.Getenv("POD_UID"),
		"UID of this pod, for which a gateway's token must be meant; default: $POD_UID")
	flags.Func("allow-subject",
		"subject that may read, such as system:serviceaccount:parley-system:parley-gateway (required; repeat it or "+
			"separate by commas)", func(s string) error {
			c.subjects = append(c.subjects, strings.Split(s, ",")...)
			return nil
		})
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if len(c.subjects) == 0 {
		return c, errors.New("--allow-subject is required: without it, no client could read")
	}
	if c.namespace == "" || c.podUID == "" {
		return c, errors.New("--pod-namespace and --pod-uid are required: tokens must be meant for this pod")
	}
	return c, nil
}
