// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shard has several managers share namespaces out before a real kube-apiserver and etcd, and counts what
// each of them asks. The managers run in this process; people and generation pods are played through the API.
package shard

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/kit/waiting"
)

// patience is how long a test waits for something that must come: long against what a crowded machine takes.
const patience = 3 * time.Minute

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testcluster.Run(m, &cluster))
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	waiting.Until(t, patience, what, condition)
}

// namespaces creates namespaces with a model, as many in each of the shards.
func namespaces(t *testing.T, prefix string, each, total int) (names []string) {
	t.Helper()
	for i, missing := 0, total*each; missing > 0; i++ {
		name := fmt.Sprintf("%s-%d", prefix, i)
		taken := 0
		for _, other := range names {
			if ownerOf(other, total) == ownerOf(name, total) {
				taken++
			}
		}
		if taken == each {
			continue
		}
		missing--
		names = append(names, name)
		cluster.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		cluster.Create(t, chattest.In(name, chattest.Config("model", chattest.Default)))
	}
	return names
}

// ownerOf is the shard that the namespace is in.
func ownerOf(namespace string, total int) int {
	for i := range total {
		if (shard.Shard{Index: i, Total: total}).Owns(namespace) {
			return i
		}
	}
	return -1
}

// shardsOf are all shards of so many.
func shardsOf(total int) (all []shard.Shard) {
	for i := range total {
		all = append(all, shard.Shard{Index: i, Total: total})
	}
	return all
}
