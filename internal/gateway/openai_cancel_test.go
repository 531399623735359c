// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

const background = `{"input": "Hi.", "background": true, "conversation": "c"}`

// interrupted waits until someone has asked for an interrupt, and ends the turn.
func (c *conversation) interrupted() {
	c.in.t.Helper()
	var now v1beta1.Chat
	waitUntil(c.in.t, "an interrupt is asked for", func() bool {
		err := cluster.Client.Get(c.in.t.Context(), client.ObjectKeyFromObject(c.chat), &now)
		return err == nil && now.Annotations[v1beta1.AnnotationInterrupt] != ""
	})
	c.chat.ResourceVersion, c.chat.Annotations = now.ResourceVersion, now.Annotations
	c.chat.Status.Turn.Result = v1beta1.TurnInterrupted
	c.commit()
}

func (c *compatible) cancels(message string) {
	c.in.t.Helper()
	got := c.does("POST", c.base()+"/responses/resp_"+message+"/cancel", "")
	if got.status != 200 || !strings.Contains(got.body, `"status":"cancelled"`) {
		c.in.t.Errorf("%d %s", got.status, got.body)
	}
}

func TestCancelOfStartedMessageInterruptsItsTurn(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c, anna := in.converse("c"), in.user("anna")
	message := in.message(anna.sends("/responses", background))
	message.Status.State = v1beta1.MessageQueued // Its status is late.
	check.OK(t, cluster.Client.Status().Update(t.Context(), message))
	c.takeUp(1)
	c.commit()
	ended := make(chan struct{})
	go func() { defer close(ended); c.interrupted() }()
	anna.cancels(message.Name)
	in.message(message.Name)
	<-ended
}

func TestCancelWithdrawsMessageThatChatHasNotSeen(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.converse("c")
	anna := in.user("anna")
	message := in.message(anna.sends("/responses", background))
	anna.cancels(message.Name)
	err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(message), message)
	check.Equal(t, "it is withdrawn", true, apierrors.IsNotFound(err))
}
