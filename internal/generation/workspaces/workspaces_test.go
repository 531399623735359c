// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspaces

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/check"
)

func TestTroubleWithTheAPIServerPasses(t *testing.T) {
	refused := errors.New("connection refused")
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "parley-generation-x")
	for name, c := range map[string]struct {
		err error
		// lasts is how long it does; movesOn is when the chat is given to another pod.
		lasts, movesOn time.Duration
		// read and token say whether there is a workspace in the end, and a token, and most when that is known.
		read, token bool
		most        time.Duration
	}{
		"it is restarted":       {refused, 5 * time.Second, time.Hour, true, true, 10 * time.Second},
		"it does not come back": {refused, time.Hour, time.Hour, false, false, 20 * time.Second},
		"there is none":         {notFound, time.Hour, 3 * time.Second, false, false, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), c.movesOn)
				defer cancel()
				trouble := func() error {
					if time.Since(began) < c.lasts {
						return c.err
					}
					return nil
				}
				w := New(Options{Now: time.Now, Mint: func(context.Context, string) (string, time.Time, error) {
					return "token", time.Now().Add(time.Hour), trouble()
				}})
				_, err := w.token(ctx, "audience")
				check.Equal(t, "token, late", []any{c.token, false}, []any{err == nil, time.Since(began) > c.most})
				began = time.Now()
				_, err = read(t.Context(), func(context.Context, string) (*v1beta1.Workspace, error) {
					return &v1beta1.Workspace{}, trouble()
				}, "c")
				took := time.Since(began)
				check.Equal(t, "workspace, late", []any{c.read, false},
					[]any{err == nil, took > c.most || apierrors.IsNotFound(err) && took > 0})
			})
		})
	}
}

func TestCallWaitsForWorkspaceThatJustLostPod(t *testing.T) {
	unready := func(reason v1beta1.ConditionReason) metav1.Condition {
		return metav1.Condition{Reason: string(reason), Status: metav1.ConditionUnknown}
	}
	lost, starting := unready(v1beta1.ReasonPodLost), unready(v1beta1.ReasonPodStarting)
	failed := metav1.Condition{Reason: string(v1beta1.ReasonPodNotStarting), Status: metav1.ConditionFalse}
	stopped := metav1.Condition{Reason: string(v1beta1.ReasonWorkspaceStopped), Status: metav1.ConditionTrue}
	for name, c := range map[string]struct {
		phase v1beta1.WorkspacePhase
		ready metav1.Condition
		// before is for how long it was not ready before the call, and lasts for how long after.
		before, lasts time.Duration
		found         bool
		most          time.Duration
	}{
		"it is ready":       {v1beta1.WorkspacePhaseStarting, lost, 0, 0, true, 0},
		"it is ready again": {v1beta1.WorkspacePhaseStarting, lost, 0, 3 * time.Second, true, 4 * time.Second},
		"its pod is being removed": {v1beta1.WorkspacePhaseStopping, unready(v1beta1.ReasonPodStopping), 0,
			5 * time.Second, true, 6 * time.Second},
		"a pod is to be created": {v1beta1.WorkspacePhasePending, starting, 0, 5 * time.Second, true, 6 * time.Second},
		"another pod starts":     {v1beta1.WorkspacePhaseStarting, starting, 0, 20 * time.Second, true, 21 * time.Second},
		"it is not ready for now": {v1beta1.WorkspacePhaseStarting, lost, 50 * time.Second, time.Hour, false,
			11 * time.Second},
		"it was not ready for long": {v1beta1.WorkspacePhaseStarting, starting, time.Hour, time.Hour, false, 0},
		"the manager's clock is ahead": {v1beta1.WorkspacePhaseStarting, lost, -time.Hour, 3 * time.Hour, false,
			61 * time.Second},
		"it has failed":  {v1beta1.WorkspacePhaseFailed, failed, 0, time.Hour, false, 0},
		"it was stopped": {v1beta1.WorkspacePhaseStopped, stopped, 0, time.Hour, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				root := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
				w := New(Options{Now: time.Now, Workspace: func(context.Context, string) (*v1beta1.Workspace, error) {
					workspace := &v1beta1.Workspace{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
						*metav1.NewControllerRef(root, v1beta1.GroupVersion.WithKind("Chat"))}}}
					workspace.Status.Pod = &v1beta1.WorkspacePod{Address: "10.0.0.7"}
					phase, ready := v1beta1.WorkspacePhaseReady, metav1.Condition{Type: v1beta1.ConditionReady}
					if time.Since(began) < c.lasts {
						phase, ready = c.phase, c.ready
						ready.Type, ready.LastTransitionTime = v1beta1.ConditionReady, metav1.NewTime(began.Add(-c.before))
					}
					workspace.Status.Phase, workspace.Status.Conditions = phase, []metav1.Condition{ready}
					return workspace, nil
				}})
				pod, err := w.pod(t.Context(), root)
				check.Equal(t, "pod, no error, late", []any{c.found, c.found, false},
					[]any{pod != nil, err == nil, time.Since(began) > c.most})
			})
		})
	}
}

func TestCallTakesReplacementOfLostPod(t *testing.T) {
	root := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
	root.Status.Internal.Attempt.HasWorkspace = true
	pods := []v1beta1.WorkspacePod{{UID: "lost", Address: "10.0.0.1"}, {UID: "next", Address: "10.0.0.2"}}
	w := New(Options{Now: time.Now,
		Mint: func(context.Context, string) (string, time.Time, error) {
			return "token", time.Now().Add(time.Hour), nil
		},
		Workspace: func(context.Context, string) (*v1beta1.Workspace, error) {
			pod := pods[0]
			pods = pods[len(pods)-1:]
			return &v1beta1.Workspace{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(root, v1beta1.GroupVersion.WithKind("Chat"))}},
				Status: v1beta1.WorkspaceStatus{Phase: v1beta1.WorkspacePhaseReady, Pod: &pod,
					Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue}}}}, nil
		}})
	w.transport = answering(func(r *http.Request) (*http.Response, error) {
		if r.URL.Hostname() == "10.0.0.1" {
			return nil, errors.New("connection refused")
		}
		answer := httptest.NewRecorder()
		_, _ = answer.WriteString(`{"chat":"u"}`) // A recorder takes all.
		return answer.Result(), nil
	})
	c, err := w.Of(t.Context(), root)
	check.OK(t, err)
	_, pod := c.Place()
	check.Equal(t, "pod", "next", pod)
}

type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func TestPodIsGoneOnceItsWorkspaceSaysSo(t *testing.T) {
	type status = v1beta1.WorkspaceStatus
	pod, another := &v1beta1.WorkspacePod{UID: "pod"}, &v1beta1.WorkspacePod{UID: "another"}
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "workspaces"}, "c")
	for name, c := range map[string]struct {
		status   status
		stranger bool
		err      error
		want     bool
	}{
		"it is the pod":                   {status{Phase: v1beta1.WorkspacePhaseReady, Pod: pod}, false, nil, false},
		"it does not answer for a moment": {status{Phase: v1beta1.WorkspacePhaseStarting, Pod: pod}, false, nil, false},
		"it is being removed":             {status{Phase: v1beta1.WorkspacePhaseStopping, Pod: pod}, false, nil, true},
		"there is another":                {status{Phase: v1beta1.WorkspacePhaseReady, Pod: another}, false, nil, true},
		"there is none":                   {status{Phase: v1beta1.WorkspacePhasePending}, false, nil, true},
		"the workspace was stopped":       {status{Phase: v1beta1.WorkspacePhaseStopped}, false, nil, true},
		"the workspace is gone":           {status{}, false, notFound, true},
		"the workspace is another's":      {status{Phase: v1beta1.WorkspacePhaseReady, Pod: pod}, true, nil, true},
		"nobody knows":                    {status{}, false, errors.New("the API server does not answer"), false},
	} {
		t.Run(name, func(t *testing.T) {
			root := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "root"}}
			owner := root.DeepCopy()
			if c.stranger {
				owner.UID = "stranger"
			}
			w := New(Options{Workspace: func(_ context.Context, name string) (*v1beta1.Workspace, error) {
				return &v1beta1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(owner, v1beta1.GroupVersion.WithKind("Chat"))}}, Status: c.status}, c.err
			}})
			check.Equal(t, "gone", c.want, w.gone(t.Context(), root, "pod"))
		})
	}
}

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
