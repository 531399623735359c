// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"os"
	"testing"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

var control *testcluster.Cluster

func TestMain(m *testing.M) { os.Exit(testcluster.RunShared(m, &control)) }

func TestStreamOfAStoredChatFillsTheScreen(t *testing.T) {
	namespace := control.Namespace(t, "converse")
	chat := chattest.In(namespace, chattest.Chat("triage"))
	control.Create(t, chat)
	question, answer := chattest.AnsweredTurn(chat, "Is *it* the CNI?", time.Now())
	status := question.Status
	control.Create(t, question)
	question.Status = status
	control.Create(t, answer)
	check.OK(t, control.Client.Status().Update(t.Context(), question))
	check.OK(t, control.Client.Status().Update(t.Context(), chat))
	api, err := apiclient.New(control.Config, "test")
	check.OK(t, err)
	s := newScreen(t)
	for e, err := range (cluster.APIServer{Client: api}).Follow(t.Context(), namespace, "triage", true, func(error) {}) {
		check.OK(t, err)
		s.takes(e)
		if e.Name == stream.EventStatus {
			break
		}
	}
	s.shows("▎> Is *it* the CNI?\n\nIs it the CNI?", "▎triage: Ready")
}
