// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func TestANoteComesToWhoFollowsTheChat(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("c")
	l := in.listen("c", "", 0)
	l.waitName(stream.EventStatus)
	note := &v1beta1.ChatMessage{ObjectMeta: in.meta("n"), Spec: v1beta1.ChatMessageSpec{
		ChatRef: v1beta1.ChatReference{Name: "c"}, Content: "the customer has called", Visibility: v1beta1.VisibleToUsers}}
	in.create(note)
	note.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageNoted, ChatUID: string(c.chat.UID),
		Index: new(int64(0))}
	check.OK(t, cluster.Client.Status().Update(t.Context(), note))
	told := l.waitName(stream.EventNote)
	check.Contains(t, string(told[len(told)-1].Data), "the customer has called")
	check.OK(t, cluster.Client.Delete(t.Context(), note))
	l.waitName(stream.EventNoteDeleted)
}
