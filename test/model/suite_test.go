// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model holds the operator to the reference model of the conversation API. From a seed it draws sequences of what
// people and generation pods do to a chat, carries each out on a real kube-apiserver with the real controllers, and after each
// operation waits until what people can see of the chat is what the model says. A sequence that fails is shrunk and printed
// in a form that can be replayed.
//
//	go test ./test/model                                   as many sequences as fit into 35 s, from a new seed
//	go test ./test/model -seed=7 -sequences=1              the sequence of that seed
//	go test ./test/model -sequences=5000 -timeout=2h       a long run
//	go test ./test/model -replay='chat prompt; finish r1'  these operations
package model

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/testing/testcluster"
)

var (
	// The same sequences each time: a change is judged by what it changes. "make explore" draws new ones.
	seedFlag      = flag.Int64("seed", 1, "seed of the first sequence; the next ones count up; 0: the time")
	sequencesFlag = flag.Int("sequences", 100, "number of sequences; 0: as many as fit into -budget")
	budgetFlag    = flag.Duration("budget", 10*time.Minute, "time for drawing sequences, unless -sequences is given")
	opsFlag       = flag.Int("ops", 30, "the most operations of a sequence")
	workersFlag   = flag.Int("workers", 40, "number of sequences that run at once")
	patienceFlag  = flag.Duration("patience", 20*time.Second, "how long the operator may take to get where the model is")
	shrinkFlag    = flag.Duration("shrink", time.Minute, "time for shrinking a sequence that fails")
	failuresFlag  = flag.Int("failures", 3, "number of failures after which no further sequence begins")
	logsFlag      = flag.Bool("logs", false, "print what the operator logs")
	replayFlag    = flag.String("replay", "", "operations to carry out instead, separated by semicolons or line ends")
)

var (
	cluster *testcluster.Cluster
	watched *store
)

func TestMain(m *testing.M) {
	flag.Parse()
	logger := logr.Discard()
	if *logsFlag {
		logger = funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{LogTimestamp: true})
	}
	ctrl.SetLogger(logger)
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var err error
	if cluster, err = testcluster.Start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = cluster.Stop() }()
	stop, err := startManager(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	if watched, err = watch(ctx, cluster.Config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// startManager runs the manager's controllers until stop is called, which waits for their end.
func startManager(parent context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(parent)
	mgr, err := controllers.NewManager(ctx, cluster.Config, ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err == nil {
		err = controllers.Setup(mgr, controllers.Options{
			Pods:        podspec.Settings{Image: "parley:test", Issuer: "https://issuer.test"},
			PodCapacity: 1000, PodIdle: time.Hour, Workers: 8, Now: time.Now,
		})
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() { cancel(); <-ended }, nil
}
