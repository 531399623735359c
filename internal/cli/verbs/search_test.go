// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"parley.dev/parley/test/kit/check"
)

func TestSearchPrintsHitsOfAllPieces(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, strings.TrimPrefix(r.URL.RequestURI(), "/v1beta1/namespaces/"+p.namespace))
		w.Header().Set("Content-Type", "application/json")
		answer := `{"hits":[{"chat":"b","message":"m2","role":"Assistant","createdAt":"2026-11-01T10:00:00Z",` +
			`"excerpt":"\u001b[2Jnode"}],"messages":20}`
		if len(asked)%2 == 1 {
			answer = strings.ReplaceAll(strings.ReplaceAll(answer, `"b"`, `"a"`), `20}`, `500,"continue":"x"}`)
		}
		_, _ = w.Write([]byte(answer)) // Otherwise the test fails.
	}))
	t.Cleanup(server.Close)
	run := func(args ...string) *command {
		return p.run(append([]string{"search", "--gateway", server.URL}, args...)...)
	}
	age := duration.HumanDuration(time.Since(time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)))
	run("node", "not ready").shows("CHAT   MESSAGE   ROLE        AGE   TEXT\na      m2        Assistant   "+age+
		"   \\u001b[2Jnode\nb      m2        Assistant   "+age+"   \\u001b[2Jnode\n", "Found 2 messages in 520 messages.")
	check.Equal(t, "first request", "/search?continue=&q=node+%22not+ready%22", asked[0])
	c := run("-o", "json", "node")
	c.succeeds()
	check.Equal(t, "hits in JSON", 2, strings.Count(c.out.String(), "\n"))
}
