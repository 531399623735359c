// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspaces

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/check"
)

// listOfPodTemplates is as the API server writes it, with what a model must not see.
const listOfPodTemplates = `{"kind":"PodTemplateList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"x"},"items":[
 {"metadata":{"name":"go","labels":{"team":"web"},"annotations":{"parley.dev/description":"A Go toolchain."}},
  "template":{"metadata":{},"spec":{"serviceAccountName":"builder","containers":[
   {"name":"beside","image":"other","env":[{"name":"PASSWORD","value":"hunter2"}]},
   {"name":"workspace","image":"golang:1.27","command":["hunter2"],"env":[{"name":"PASSWORD","value":"hunter2"}],
    "resources":{"requests":{"cpu":"500m"},"limits":{"memory":"2Gi"}}}]}}},
 {"metadata":{"name":"one"},"template":{"spec":{"containers":[{"name":"x","image":"first"}]}}},
 {"metadata":{"name":"none"},"template":{"spec":{"containers":null}}}]}`

func TestOfTemplatesModelsLearnWhatIsForThem(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, listOfPodTemplates)
	}))
	t.Cleanup(server.Close)
	client, err := apiclient.New(&rest.Config{Host: server.URL}, "test")
	check.OK(t, err)
	all, more, err := Templates(client, "ns")(t.Context(), "a=b", 3, 1<<20)
	if err != nil || !more || len(all) != 3 || asked != "/api/v1/namespaces/ns/podtemplates?labelSelector=a%3Db&limit=3" {
		t.Fatalf("asked %s; got %d templates, more: %t, %v", asked, len(all), more, err)
	}
	check.Equal(t, "image, requests, limits", []any{"golang:1.27", "500m", "2Gi", "first", ""},
		[]any{all[0].Image, all[0].Requests["cpu"], all[0].Limits["memory"], all[1].Image, all[2].Image})
	if raw, err := json.Marshal(all); err != nil || strings.Contains(string(raw), "hunter2") {
		t.Errorf("a model could learn %s, %v", raw, err)
	}
}
