// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
)

// source is what the chat's workspace is made from, changed.
func source(change ...func(*v1alpha1.WorkspaceSource)) *v1alpha1.WorkspaceSource {
	s := &v1alpha1.WorkspaceSource{PodTemplateRef: &v1alpha1.WorkspaceTemplateReference{Name: "go"}}
	for _, c := range change {
		c(s)
	}
	return s
}

func stored(size, class string) func(*v1alpha1.WorkspaceSource) {
	return func(s *v1alpha1.WorkspaceSource) {
		s.PodTemplateRef.Storage = &v1alpha1.WorkspaceStorage{Size: size, StorageClassName: class}
	}
}

// with gives values for parameters: names, each with its value.
func with(values ...string) func(*v1alpha1.WorkspaceSource) {
	return func(s *v1alpha1.WorkspaceSource) {
		for i := 0; i < len(values); i += 2 {
			s.PodTemplateRef.Parameters = append(s.PodTemplateRef.Parameters,
				v1alpha1.WorkspaceParameter{Name: values[i], Value: values[i+1]})
		}
	}
}

func kept(seconds int32) func(*v1alpha1.WorkspaceSource) {
	return func(s *v1alpha1.WorkspaceSource) { s.IdleSeconds = &seconds }
}

func deletion(policy v1alpha1.WorkspaceDeletionPolicy) func(*v1alpha1.WorkspaceSource) {
	return func(s *v1alpha1.WorkspaceSource) { s.DeletionPolicy = policy }
}

func named(template string) func(*v1alpha1.WorkspaceSource) {
	return func(s *v1alpha1.WorkspaceSource) { s.PodTemplateRef.Name = template }
}

// pooled is a sandbox of the warm pool, and ofPod works in the pod.
func pooled(pool string) func(*v1alpha1.WorkspaceSource) {
	return func(s *v1alpha1.WorkspaceSource) { s.WarmPoolRef = &v1alpha1.WarmPoolReference{Name: pool} }
}

func ofPod(pod string) func(*v1alpha1.WorkspaceSource) {
	return func(s *v1alpha1.WorkspaceSource) { s.PodRef = &v1alpha1.WorkspacePodReference{Name: pod} }
}

// alone is a source without a template.
func alone(change ...func(*v1alpha1.WorkspaceSource)) *v1alpha1.WorkspaceSource {
	return source(append([]func(*v1alpha1.WorkspaceSource){
		func(s *v1alpha1.WorkspaceSource) { s.PodTemplateRef = nil }}, change...)...)
}

// many are values for so many parameters.
func many(n int) (values []string) {
	for i := range n {
		values = append(values, fmt.Sprint("p", i), "1")
	}
	return values
}

func TestInvalidWorkspaceIsRejectedWithFieldAndAdvice(t *testing.T) {
	t.Parallel()
	const noSize = "size is no quantity above 0, such as 10Gi"
	for name, c := range map[string]struct {
		source *v1alpha1.WorkspaceSource
		says   string
	}{
		"made from nothing":              {&v1alpha1.WorkspaceSource{}, "set podTemplateRef, which names the PodTemplate"},
		"of a template and a pool":       {source(pooled("a")), "one of podTemplateRef, "},
		"of a template and a pod":        {source(ofPod("a")), "one of podTemplateRef, "},
		"of a pool that is a path":       {alone(pooled("../a")), "warmPoolRef.name"},
		"of a pod that is a path":        {alone(ofPod("a/b")), "podRef.name"},
		"of a pod that is to stop":       {alone(ofPod("a"), kept(60)), "that of podRef is not Parley's"},
		"of a pod whose storage is kept": {alone(ofPod("a"), deletion("Retain")), "deletionPolicy is about storage"},
		"of a pool that keeps storage":   {alone(pooled("a"), deletion("Delete")), "deletionPolicy is about storage"},
		"a template without a name":      {source(named("")), "podTemplateRef.name"},
		"a template that is a path":      {source(named("../go")), "podTemplateRef.name"},
		"a template's long name":         {source(named(strings.Repeat("a", 254))), "podTemplateRef.name"},
		"a size of nothing":              {source(stored("0", "")), noSize},
		"a size of nothing, in Gi":       {source(stored("0Gi", "")), noSize},
		"a size below nothing":           {source(stored("-1Gi", "")), noSize},
		"a size that is a word":          {source(stored("lots", "")), noSize},
		"a size of another unit":         {source(stored("10GB", "")), noSize},
		"a size with a blank":            {source(stored("10 Gi", "")), noSize},
		"a size that is not a number":    {source(stored("NaN", "")), noSize},
		"a size of many digits":          {source(stored(strings.Repeat("1", 33), "")), "storage.size"},
		"a class of no name":             {source(stored("1Gi", "Fast_SSD")), "storage.storageClassName"},
		"a parameter without a name":     {source(with("", "1")), "parameters[0].name"},
		"a parameter's long name":        {source(with(strings.Repeat("a", 64), "1")), "parameters[0].name"},
		"a parameter of a digit":         {source(with("1a", "1")), "parameters[0].name"},
		"a parameter of a place":         {source(with("env/PATH", "1")), "parameters[0].name"},
		"a parameter's long value":       {source(with("a", strings.Repeat("a", 1025))), "parameters[0].value"},
		"a parameter twice":              {source(with("a", "1", "a", "2")), "Duplicate value"},
		"65 parameters":                  {source(with(many(65)...)), "must have at most 64 items"},
		"kept for less than no time":     {source(kept(-1)), "idleSeconds"},
		"kept for more than a week":      {source(kept(604801)), "idleSeconds"},
		"a deletion policy that is none": {source(deletion("Keep")), `"Retain"`},
	} {
		t.Run(name, func(t *testing.T) { checkSource(t, c.source, c.says) })
	}
}

// checkSource checks whether the API server refuses a chat and a workspace of the source.
func checkSource(t *testing.T, source *v1alpha1.WorkspaceSource, words string) {
	t.Helper()
	chat, w := newChat(unique("chat")), workspace()
	chat.Spec.Workspace, w.Spec.Source = source, *source
	for _, o := range []client.Object{chat, w} {
		checkRefusal(t, dry().Create(t.Context(), o), words)
	}
}

func TestAWorkspaceAtTheBoundsIsTaken(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*v1alpha1.WorkspaceSource{
		"of the longest names": source(named(strings.Repeat("a", 253)), stored("1", strings.Repeat("b", 253)),
			with(strings.Repeat("p", 63), strings.Repeat("é", 1024))),
		"of a fraction":                 source(stored("0.5Gi", "")),
		"of the default size":           source(stored("", "")),
		"of 64 parameters":              source(with(many(64)...)),
		"of values that are not simple": source(with("a", "", "B-1_c", "$(X) \"y\" 'z' \\ \n- {a: [b]} # é 🙂")),
		"never stopped":                 source(kept(0)),
		"of a pool":                     alone(pooled(strings.Repeat("a", 253)), kept(60)),
		"of a pod":                      alone(ofPod(strings.Repeat("a", 253))),
		"kept for a week":               source(kept(604800)),
	} {
		t.Run(name, func(t *testing.T) { checkSource(t, s, "") })
	}
}

func TestAWorkspaceStaysWhatItIs(t *testing.T) {
	t.Parallel()
	const stays = "cannot move between a template, a pool and a pod"
	for name, c := range map[string]struct {
		was   *v1alpha1.WorkspaceSource
		patch string
		says  string
	}{
		"another template":              {source(), `{"podTemplateRef":{"name":"rust"}}`, ""},
		"a pool in place of the other":  {source(), `{"podTemplateRef":null,"warmPoolRef":{"name":"a"}}`, stays},
		"a pod in place of a template":  {source(), `{"podTemplateRef":null,"podRef":{"name":"a"}}`, stays},
		"a template in place of a pool": {alone(pooled("a")), `{"warmPoolRef":null,"podTemplateRef":{"name":"a"}}`, stays},
		"a pod in place of a pool":      {alone(pooled("a")), `{"warmPoolRef":null,"podRef":{"name":"a"}}`, stays},
		"another pool":                  {alone(pooled("a")), `{"warmPoolRef":{"name":"b"}}`, stays},
		"the pool's idle time":          {alone(pooled("a")), `{"idleSeconds":7}`, ""},
		"another pod":                   {alone(ofPod("a")), `{"podRef":{"name":"b"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			chat, w := newChat(unique("chat")), workspace()
			chat.Spec.Workspace, w.Spec.Source = c.was, *c.was
			mustCreate(t, chatter, chat)
			mustCreate(t, manager, w)
			try(t, []write{
				{chatter, "changes the chat", patches(chat, `{"spec":{"workspace":`+c.patch+`}}`), c.says},
				{manager, "changes the workspace", patches(w, `{"spec":{"source":`+c.patch+`}}`), noRight},
				{root, "changes the workspace", patches(w, `{"spec":{"source":`+c.patch+`}}`), c.says},
			})
		})
	}
}

func TestASubChatNamesNoWorkspace(t *testing.T) {
	t.Parallel()
	const above = "a sub-chat shares the workspace of the chat above it: set workspace there"
	sub := subChat(unique("chat"), "root")
	mustCreate(t, chatter, sub)
	both := sub.DeepCopy()
	both.ObjectMeta, both.Spec.Workspace = meta("chat"), source()
	alone := newChat(unique("chat"))
	mustCreate(t, chatter, alone)
	const names = `{"spec":{"workspace":{"podTemplateRef":{"name":"go"}}}}`
	try(t, []write{
		{chatter, "creates one that does", creates(both), above},
		{chatter, "adds one later", patches(sub, names), above},
		{chatter, "adds one to a chat of its own", patches(alone, names), ""},
		{chatter, "takes it away", patches(alone, `{"spec":{"workspace":null}}`), ""},
	})
}
