// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory measures what chats at rest cost the manager, what it does with them when it starts, and how they go
// when they are deleted: the controllers in a process of their own, before a real kube-apiserver and etcd that hold
// many chats which have been answered. Only what a start asks the API server is asserted.
package memory

import (
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"parley.dev/parley/test/kit/testcluster"
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	if config := os.Getenv(managerVariable); config != "" {
		if err := beManager(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(testcluster.Run(m, &cluster))
}
