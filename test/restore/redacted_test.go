// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history/redact"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
)

// TestRedactedBackupIsNotAnsweredAgain restores what a redaction leaves of an archive, which has the objects of a
// backup.
func TestRedactedBackupIsNotAnsweredAgain(t *testing.T) {
	model, url := newModel(t)
	from := newRoom(t, origin)
	noKey := func(s *v1beta1.ChatModelConfigSpec) { s.APIKey = nil }
	from.create(modeltest.Config("default", url, chattest.Default, noKey),
		chattest.Chat("pasted", chattest.Prompt(password+" is my password")))
	from.awaitMessage("pasted-prompt", v1beta1.ReasonAnswered)
	from.say("pasted", "next", "once more: "+password)
	before, asked := from.get("pasted").Status.History, len(model.Requests())
	text, err := redact.New(password)
	check.OK(t, err)
	var list unstructured.UnstructuredList
	check.OK(t, json.Unmarshal([]byte(from.kubectl("get", kinds, "-o", "json")), &list))
	for i := range list.Items {
		_, _, err := text.Archived(&list.Items[i], time.Now())
		check.OK(t, err)
	}
	redacted, err := json.Marshal(&list)
	check.OK(t, err)
	if strings.Contains(string(redacted), password) {
		t.Fatalf("the text is still in %s", redacted)
	}

	to := newRoom(t, target)
	succeeds(t, to.restore(string(redacted), nil))
	to.awaitRestored("pasted")
	to.awaitMessage("next", v1beta1.ReasonAnswered)
	check.Equal(t, "the history", before.Length, to.get("pasted").Status.History.Length)
	to.say("pasted", "later", "and now?")
	requests := model.Requests()
	check.Equal(t, "requests to the model", asked+1, len(requests))
	if told := string(requests[len(requests)-1].Body); strings.Contains(told, password) ||
		!strings.Contains(told, "once more: *******") {
		t.Errorf("the model was told %s", told)
	}
}
