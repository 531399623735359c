// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
)

func TestAuditLogNamesWhoRestoredWhat(t *testing.T) {
	from := newFamily(t)
	to := newRoom(t, target)
	succeeds(t, to.restore(from.kubectl("get", kinds, "-o", "yaml"), nil))
	root := from.get("root").UID
	who := username(to.ns, "restorer")
	to.awaitAudited(map[string]string{
		"parley-authors/restored": who + " restores chats root from UID " + string(root),
		"parley-status/restored":  who + " restores the status of chats root from UID " + string(root),
	})
}

func TestAuditLogNamesWhoRedactedWhat(t *testing.T) {
	_, url := newModel(t)
	r := newRoom(t, target)
	r.create(modeltest.Config("default", url, chattest.Default, func(s *v1beta1.ChatModelConfigSpec) { s.APIKey = nil }),
		chattest.Chat("pasted", chattest.Prompt(password+" is my password")))
	r.awaitMessage("pasted-prompt", v1beta1.ReasonAnswered)
	r.redact("pasted")
	who := username(r.ns, "alice")
	r.awaitAudited(map[string]string{
		"parley-redactions/redacted": who + " removes text from chatmessages/pasted-prompt",
		"parley-status/redacted":     who + " removes text from the status of chats/pasted",
	})
	// The gateway asks so before it redacts an archive.
	check.OK(t, r.client("alice").Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "redact", Group: v1beta1.GroupVersion.Group, Resource: "chats", Namespace: r.ns}}}))
	r.eventually("the audit log has the question of the gateway", func() bool {
		log, err := os.ReadFile(auditLog)
		check.OK(t, err)
		return slices.ContainsFunc(strings.Split(string(log), "\n"), func(event string) bool {
			return strings.Contains(event, who) && strings.Contains(event, `"verb":"redact"`)
		})
	})
}

// awaitAudited waits until the audit log has the annotations for the namespace.
func (r *room) awaitAudited(annotations map[string]string) {
	r.t.Helper()
	for key, want := range annotations {
		r.eventually("the audit log has "+want, func() bool { return audited(r.t, r.ns, key, want) })
	}
}

// audited reports whether an event of the namespace has the annotation.
func audited(t *testing.T, namespace, key, want string) bool {
	log, err := os.ReadFile(auditLog)
	check.OK(t, err)
	for line := range strings.Lines(string(log)) {
		var event struct {
			ObjectRef   struct{ Namespace string }
			Annotations map[string]string
		}
		if json.Unmarshal([]byte(line), &event) == nil && event.ObjectRef.Namespace == namespace &&
			event.Annotations[key] == want {
			return true
		}
	}
	return false
}
