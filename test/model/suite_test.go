// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model holds the operator to the reference model of the conversation API. From a seed it draws sequences of
// what people and generation pods do to a chat, to its sub-chat and to the other chats of its namespace, carries each
// out on a real kube-apiserver with the real controllers, and after each operation waits until what people can see of
// the chats is what the model says. A watch counts the chats that begin a step beside each other: no more than the
// namespace's quotas let. With -life managers are killed at random meanwhile. A sequence that fails is shrunk and
// printed in a form that can be replayed.
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

	"parley.dev/parley/test/kit/testcluster"
)

var (
	// The same sequences each time: a change is judged by what it changes. "make explore" draws new ones.
	seedFlag      = flag.Int64("seed", 1, "seed of the first sequence; the next ones count up; 0: the time")
	sequencesFlag = flag.Int("sequences", 100, "number of sequences; 0: as many as fit into -budget")
	budgetFlag    = flag.Duration("budget", 10*time.Minute, "time for drawing sequences, unless -sequences is given")
	opsFlag       = flag.Int("ops", 30, "the most operations of a sequence")
	workersFlag   = flag.Int("workers", 40, "number of sequences that run at once")
	patienceFlag  = flag.Duration("patience", time.Minute, "how long the operator may take to get where the model is")
	shrinkFlag    = flag.Duration("shrink", time.Minute, "time for shrinking a sequence that fails")
	failuresFlag  = flag.Int("failures", 3, "number of failures after which no further sequence begins")
	lifeFlag      = flag.Duration("life", 0, "how long a manager lives on average until it is killed; 0: for ever")
	managersFlag  = flag.Int("managers", 1, "number of managers at once; with several there are no quotas")
	logsFlag      = flag.Bool("logs", false, "print what the operator logs")
	replayFlag    = flag.String("replay", "", "operations to carry out instead, separated by semicolons or line ends")
)

var (
	cluster *testcluster.Cluster
	watched *store
	heart   *pulse
)

func TestMain(m *testing.M) {
	flag.Parse()
	logger := logr.Discard()
	if *logsFlag {
		logger = funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) },
			funcr.Options{LogTimestamp: true})
	}
	ctrl.SetLogger(logger)
	os.Exit(testcluster.Run(m, &cluster, lives, func(ctx context.Context) (end func(), err error) {
		watched, err = watch(ctx, cluster.Config)
		return nil, err
	}, func(ctx context.Context) (end func(), err error) {
		heart, end = beats(ctx, cluster.Client)
		return end, nil
	}))
}
