// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func phase(of v1beta1.WorkspacePhase) func(*v1beta1.Workspace) {
	return func(w *v1beta1.Workspace) { w.Status.Phase = of }
}

func TestWorkspaceStoppedByModelStopsBeforeRestart(t *testing.T) {
	stopped := &v1beta1.ChatWorkspaceStatus{StoppedAt: new(micro(time.Minute))}
	const (
		running  = v1beta1.WorkspacePhaseReady
		stopping = v1beta1.WorkspacePhaseStopping
	)
	ago := needed(time.Hour)
	broken := said(metav1.ConditionFalse, v1beta1.ReasonPodRejected, time.Minute)
	for name, c := range map[string]struct {
		workspace *v1beta1.Workspace
		decided   *v1beta1.ChatWorkspaceStatus
		want      bool
	}{
		"it runs":                           {workspace(ago, phase(running)), stopped, true},
		"it is stopping":                    {workspace(ago, phase(stopping)), stopped, true},
		"it has stopped":                    {workspace(ago, phase(v1beta1.WorkspacePhaseStopped)), stopped, false},
		"it was needed since":               {workspace(needed(0), phase(running)), stopped, false},
		"nobody has needed it":              {workspace(phase(running)), stopped, false},
		"its model has not stopped it":      {workspace(ago, phase(running)), nil, false},
		"only a person can mend it":         {workspace(ago, broken), stopped, false},
		"a sandbox that is to be suspended": {workspace(ofPool, ago, phase(running)), stopped, true},
		"a pod that is nobody's to stop":    {workspace(named, ago, phase(running)), stopped, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := &v1beta1.Chat{Status: v1beta1.ChatStatus{Workspace: c.decided}}
			check.Equal(t, "it stops first", c.want, StopsFirst(c.workspace, root))
		})
	}
}
