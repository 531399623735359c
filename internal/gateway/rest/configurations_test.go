// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// Security (a client of the gateway): can change models, classes and quotas only as its owner may by kubectl.
func TestConfigurationFollowsCallerRole(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-admin")
	d.create(&v1beta1.ChatClass{ObjectMeta: d.meta("ops"),
		Spec: v1beta1.ChatClassSpec{Description: "For work on clusters."}})
	const key = `"apiKey":{"secretKeyRef":{"name":"openai","key":"key"}}`
	const path, spec = "/configurations/chatmodelconfigs/large", `{"spec":{"provider":"openai","model":"gpt-5",` + key + `}}`
	d.refuses(http.StatusUnprocessableEntity, "Invalid", "provider", "PUT", path, `{"spec":{"provider":"unknown","model":"m"}}`)
	d.refuses(http.StatusBadRequest, "BadRequest", `unknown field "spec.colour"`, "PUT", path,
		`{"spec":{"provider":"openai","model":"m","colour":"red"}}`)

	d.does(http.StatusOK, "PUT", path+"?dryRun=true", spec)
	d.refuses(http.StatusNotFound, "NotFound", "large", "GET", path, "")
	d.does(http.StatusOK, "PUT", path, spec)
	d.refuses(http.StatusConflict, "AlreadyExists", "large", "PUT", path, spec)
	made := d.does(http.StatusOK, "GET", path, "")
	if made.field("object", "metadata", "managedFields") != nil || made.field("object", "spec", "model") != "gpt-5" ||
		made.field("update") != true {
		t.Errorf("created was %s", made.text)
	}
	var labelled v1beta1.ChatModelConfig
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: d.namespace, Name: "large"}, &labelled))
	labelled.Labels = map[string]string{"team": "blue"}
	check.OK(t, cluster.Client.Update(t.Context(), &labelled))
	version := labelled.ResourceVersion
	changed := `{"resourceVersion":"` + version + `","spec":{"provider":"openai","model":"gpt-6",` + key + `}}`
	d.does(http.StatusOK, "PUT", path+"?dryRun=true", changed)
	check.Equal(t, "the model after a dry run", any("gpt-5"),
		d.does(http.StatusOK, "GET", path, "").field("object", "spec", "model"))
	d.does(http.StatusOK, "PUT", path, changed)
	check.Equal(t, "the model", any("gpt-6"), d.does(http.StatusOK, "GET", path, "").field("object", "spec", "model"))
	check.Equal(t, "a label", any("blue"),
		d.does(http.StatusOK, "GET", path, "").field("object", "metadata", "labels", "team"))
	d.refuses(http.StatusConflict, "Conflict", "modified", "PUT", path, changed)
	d.refuses(http.StatusForbidden, "Forbidden", "parley-class-admin", "PUT", "/configurations/chatclasses/dev", `{"spec":{}}`)

	kinds := d.does(http.StatusOK, "GET", "/configurations", "").body["kinds"].([]any)
	models, classes := kinds[0].(map[string]any), kinds[1].(map[string]any)
	if len(kinds) != 3 || models["create"] != true || classes["create"] != nil {
		t.Errorf("kinds: %v", kinds)
	}
	summary := func(kind map[string]any) any { return kind["objects"].([]any)[0].(map[string]any)["summary"] }
	check.Equal(t, "the model's summary", any("gpt-6, openai"), summary(models))
	check.Equal(t, "the class's summary", any("For work on clusters."), summary(classes))
}

func TestConfigurationNamesKindsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-tool-approver")
	kinds := d.does(http.StatusOK, "GET", "/configurations", "").body["kinds"].([]any)
	if len(kinds) != 3 {
		t.Errorf("kinds: %v", kinds)
	}
	for _, kind := range kinds {
		if why, _ := kind.(map[string]any)["refused"].(string); !strings.Contains(why, "cannot list") {
			t.Errorf("refused is not said: %v", kind)
		}
	}
	d.url = strings.Split(d.url, "/namespaces/")[0]
	for resource, field := range map[string]string{"chatmodelconfigs": "provider", "chatclasses": "firstPrompts",
		"chatquotas": "generating"} {
		schema := d.does(http.StatusOK, "GET", "/configurations/"+resource+"/schema", "")
		if schema.field("properties", field, "description") == nil {
			t.Errorf("the schema of %s has no %s: %.300s", resource, field, schema.text)
		}
	}
}
