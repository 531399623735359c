// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gateway serves the streams of chats to people and programs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/apiclient"
	"parley.dev/parley/internal/gateway"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/telemetry"
)

const (
	// generationPods selects the pods that have a relay.
	generationPods = "parley.dev/component=generation"
	userAgent      = "parley-gateway"
	// drain is how long streams get to end by themselves. They do not, so this is how long a request that is no stream gets.
	drain = 2 * time.Second
	// headerTimeout bounds how long a client takes to say what it wants.
	headerTimeout = 10 * time.Second
)

type config struct {
	listen, metrics, kubeconfig, relayToken string
	relayPort                               int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	cluster, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	cluster.QPS, cluster.UserAgent = -1, userAgent // priority and fairness of the API server is the limit
	registry := telemetry.NewRegistry()
	g, err := newGateway(cluster, c, telemetry.NewGateway(registry), log)
	if err != nil {
		return err
	}
	if err := telemetry.Serve(ctx, c.metrics, registry); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return serve(ctx, listener, g, log)
}

func parse(args []string) (config, error) {
	var c config
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.StringVar(&c.listen, "listen", ":8080", "address to serve on")
	flags.StringVar(&c.metrics, "metrics-address", ":8082", "where to serve Prometheus metrics; 0: nowhere")
	flags.IntVar(&c.relayPort, "relay-port", 7070, "port of the relays on generation pods")
	flags.StringVar(&c.relayToken, "relay-token-file", "/var/run/secrets/parley.dev/relay/token", "token with the audience that relays ask for")
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig to use outside of a cluster")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return c, nil
}

func newGateway(cluster *rest.Config, c config, metrics *telemetry.Gateway, log *slog.Logger) (*gateway.Gateway, error) {
	core, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	chats, err := apiclient.New(cluster, userAgent)
	if err != nil {
		return nil, err
	}
	get := func(ctx context.Context, namespace, name string) (*v1alpha1.ChatMessage, error) {
		return chats.Messages(namespace).Get(ctx, name)
	}
	return gateway.New(gateway.Config{
		Chats: chats.Chats(metav1.NamespaceAll).ListerWatcher(""),
		Pods: cache.NewFilteredListWatchFromClient(core.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
			func(o *metav1.ListOptions) { o.LabelSelector = generationPods }),
		GetMessage:     get,
		Checker:        auth.New(core.AuthenticationV1().TokenReviews(), core.AuthorizationV1().SubjectAccessReviews(), nil),
		RelayPort:      c.relayPort,
		RelayTokenFile: c.relayToken,
		Log:            log,
		Metrics:        metrics,
	})
}

// serve serves until ctx is done. Streams are then ended, and their clients resume elsewhere.
func serve(ctx context.Context, listener net.Listener, g *gateway.Gateway, log *slog.Logger) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server := &http.Server{
		Handler:           g.Handler(),
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return serving },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	var running sync.WaitGroup
	failed := make(chan error, 1)
	running.Go(func() { g.Run(serving) })
	running.Go(func() { failed <- server.Serve(listener) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stop()
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err = errors.Join(err, server.Shutdown(draining))
	running.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
