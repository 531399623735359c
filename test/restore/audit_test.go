// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

func TestAuditLogNamesWhoRestoredWhat(t *testing.T) {
	from := newFamily(t)
	to := newRoom(t, target)
	succeeds(t, to.restore(from.kubectl("get", kinds, "-o", "yaml"), nil))
	root := from.get("root").UID
	who := username(to.ns, "restorer")
	for key, want := range map[string]string{
		"parley-authors/restored": who + " restores chats root from UID " + string(root),
		"parley-status/restored":  who + " restores the status of chats root from UID " + string(root),
	} {
		to.eventually("the audit log has "+want, func() bool { return audited(t, to.ns, key, want) })
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
