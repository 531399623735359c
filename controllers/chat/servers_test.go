// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/test/kit/mcpkinds"
)

var ofToolHive = schema.GroupKind{Group: "toolhive.stacklok.dev", Kind: "MCPServer"}

// kinds are those of a cluster.
type kinds struct {
	meta.RESTMapper
	missing bool
	fails   error
}

func (k *kinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if k.missing {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return nil, k.fails
}

// withServer is a chat that refers to a server of ToolHive.
func withServer(t *testing.T, k *kinds) *world {
	t.Helper()
	w := newWorld(t)
	w.servers.mapper = k
	chat := w.chat()
	chat.Spec.MCPServers = []v1beta1.MCPServer{{Name: "mail",
		ServerRef: &v1beta1.MCPServerReference{Group: ofToolHive.Group, Kind: ofToolHive.Kind, Name: "mail"}}}
	if err := w.Direct.Update(w.Context(), chat); err != nil {
		t.Fatal(err)
	}
	return w
}

// failing answers reads of servers with the error.
func (w *world) failing(err error) {
	w.Fail = func(call string) error {
		if strings.Contains(call, "mcpserver") {
			return err
		}
		return nil
	}
}

func TestUnreadableServerDoesNotBlockTurn(t *testing.T) {
	resource := schema.GroupResource{Group: ofToolHive.Group, Resource: "mcpservers"}
	for name, c := range map[string]struct {
		kinds  kinds
		fails  error
		reason v1beta1.MCPServerReason
		says   string
		waits  bool
	}{
		"no such kind": {kinds{missing: true}, nil, v1beta1.MCPReferenceNotFound,
			"the cluster does not have this kind", false},
		"no right": {kinds{}, apierrors.NewForbidden(resource, "mail", errors.New("no")), v1beta1.MCPReferenceForbidden,
			"the manager may not read it", false},
		"no such object": {kinds{}, nil, v1beta1.MCPReferenceNotFound, "there is none in the namespace", true},
		"a conversion that does not answer": {kinds{}, apierrors.NewInternalError(errors.New("conversion webhook\x1b[2J")),
			v1beta1.MCPNotReady, "it cannot be read: Internal error occurred: conversion webhook [2J", true},
		"an API that cannot be asked for": {kinds{fails: errors.New("stale discovery")}, nil, v1beta1.MCPNotReady,
			"it cannot be read: stale discovery", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := withServer(t, &c.kinds)
			w.failing(c.fails)
			result, err := w.reconcile()
			if err != nil {
				t.Fatal(err)
			}
			later := time.Duration(0)
			for c.waits && w.chat().Status.Generation == nil { // Nothing but the time brings a pass about.
				if later += result.RequeueAfter; result.RequeueAfter <= 0 || later > time.Minute {
					t.Fatalf("after %s it does not wait: %+v", later, result)
				}
				w.gatherer.now = func() time.Time { return now.Add(later) }
				if result, err = w.reconcile(); err != nil {
					t.Fatal(err)
				}
			}
			if c.waits && later == 0 {
				t.Error("it did not wait")
			}
			st := w.chat().Status
			if told := st.Internal.MCPServers; st.Generation == nil || len(told) != 1 || told[0].Reason != c.reason ||
				told[0].Message != "MCPServer mail: "+c.says {
				t.Errorf("the attempt %+v is told %+v", st.Generation, told)
			}
		})
	}
}

func TestStartingServerIsReadAgainUntilReady(t *testing.T) {
	w := withServer(t, &kinds{})
	server := mcpkinds.New(ofToolHive, "ns", "mail", nil, map[string]any{"phase": "Pending"})
	if err := w.Direct.Create(w.Context(), server); err != nil {
		t.Fatal(err)
	}
	if result, err := w.reconcile(); err != nil || result.RequeueAfter != plan.ServerPoll {
		t.Fatalf("got %v, %v", result, err)
	}
	server.Object["status"] = map[string]any{"phase": "Ready", "url": "http://10.0.0.1:8080/mcp"}
	if err := w.Direct.Update(w.Context(), server); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if told := w.chat().Status.Internal.MCPServers; len(told) != 1 || told[0].URL != "http://10.0.0.1:8080/mcp" {
		t.Errorf("the attempt is given %+v", told)
	}
}
