// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"net/http"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

// TestRequestsForChatsQueueByNamespace installs the component, and asks the API server in which queues requests wait.
// It is not parallel: the component limits how many requests of other tests run at once.
func TestRequestsForChatsQueueByNamespace(t *testing.T) {
	strict := client.WithFieldValidation(cluster.Client, "Strict")
	for _, o := range testcluster.Kustomized(t, "components: [CONFIG/fairness]") {
		check.OK(t, strict.Create(t.Context(), o))
		t.Cleanup(func() {
			if err := cluster.Client.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		})
	}
	var schema flowcontrolv1.FlowSchema
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKey{Name: "parley"}, &schema))
	const chats, others = "/apis/parley.dev/v1alpha1/namespaces/" + ns + "/chats", "/api/v1/namespaces/" + ns + "/pods"
	in := func(user, path string, want bool) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true,
			func(ctx context.Context) (bool, error) {
				return (schemaOf(ctx, t, user, path) == string(schema.UID)) == want, nil
			}); err != nil {
			t.Errorf("%s for %s is in the queues of Parley: %v wanted, %v", path, user, want, err)
		}
	}
	for _, user := range []string{"ada", "system:serviceaccount:parley-system:parley-manager",
		"system:serviceaccount:" + ns + ":parley-generation"} {
		in(user, chats, true)
		in(user, chats+"/any/status", true)
		in(user, "/apis/parley.dev/v1alpha1/chatmessages", true)
		in(user, others, false)
	}
}

// schemaOf is the UID of the FlowSchema that a request of the user matches, as the API server says.
func schemaOf(ctx context.Context, t *testing.T, user, path string) string {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	asking, err := rest.HTTPClientFor(config)
	check.OK(t, err)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	check.OK(t, err)
	response, err := asking.Do(request)
	check.OK(t, err)
	_ = response.Body.Close() // What it says does not matter.
	return response.Header.Get("X-Kubernetes-Pf-Flowschema-Uid")
}
