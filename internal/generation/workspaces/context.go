// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspaces

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/text/skill"
	toolskills "parley.dev/parley/internal/tools/skills"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// contextTime is how long reading the context may take.
	contextTime = 5 * time.Second
	// maxContext is how much of the instructions the model reads: 64 KiB.
	maxContext = v1alpha1.MaxInstructionsBytes
	// maxSource is how large a file may be that is read for it.
	maxSource = 256 << 10
	// maxIncludes is how many files the instructions may include.
	maxIncludes = 16

	instructionsFile = "AGENTS.md"
	indexFile        = "SKILLS.md"
	contextCut       = "\n\n[This is longer than 64 KiB; the rest was cut off.]\n"
)

// Context is what the workspace says about how to work in it: AGENTS.md, with the files that it includes, and an index
// of its skills, as far as it has them. It reports whether the workspace has answered in time.
func (w *Workspaces) Context(ctx context.Context, chat *v1alpha1.Chat) (files []v1alpha1.MessageFile, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, contextTime)
	defer cancel()
	c, err := w.Of(ctx, chat)
	if err != nil {
		return nil, false
	}
	return contextIn(ctx, c)
}

// IsContext reports whether a file of that name is one that Context returns.
func IsContext(name string) bool { return name == instructionsFile || name == indexFile }

// contextIn reads the context of a workspace. It reports whether all of it was answered.
func contextIn(ctx context.Context, c *client.Client) (files []v1alpha1.MessageFile, ok bool) {
	told, answered := instructions(ctx, c)
	index, found := skills(ctx, c)
	for _, f := range []struct{ name, text string }{{instructionsFile, told}, {indexFile, index}} {
		if strings.TrimSpace(f.text) != "" {
			files = append(files, asFile(f.name, f.text))
		}
	}
	return files, answered && found
}

// refusal is the agent's, if the error is one: the workspace has answered all the same.
func refusal(err error) (refused *protocol.Error, answered bool) {
	refused, ok := errors.AsType[*protocol.Error](err)
	return refused, err == nil || ok
}

func asFile(name, text string) v1alpha1.MessageFile {
	if kept := clip.Bytes(text, maxContext); kept != text {
		text = kept + contextCut
	}
	return v1alpha1.MessageFile{Name: name, MediaType: "text/markdown",
		Data: base64.StdEncoding.EncodeToString([]byte(text))}
}

// instructions are those of AGENTS.md. A line "@PATH" in it, outside of blocks of code, stands for the text file at
// that path, relative to the file that it is in.
func instructions(ctx context.Context, c *client.Client) (text string, answered bool) {
	r := &including{ctx: ctx, client: c, seen: map[string]bool{}}
	r.include(instructionsFile)
	return r.text.String(), !r.unanswered
}

// including puts files together.
type including struct {
	ctx    context.Context
	client *client.Client
	seen   map[string]bool
	text   strings.Builder
	// unanswered is true once the workspace has not answered.
	unanswered bool
}

// include adds a file, and what that includes. Each is added once.
func (r *including) include(file string) {
	if r.seen[file] || len(r.seen) > maxIncludes || r.text.Len() > maxContext {
		return
	}
	r.seen[file] = true
	fence := ""
	for line := range strings.Lines(r.read(file)) {
		fence = fenceAfter(fence, line)
		if to := included(line); to != "" && fence == "" {
			r.include(path.Join(path.Dir(file), to))
			continue
		}
		r.text.WriteString(line)
	}
	if n := r.text.Len(); n > 0 && !strings.HasSuffix(r.text.String(), "\n") {
		r.text.WriteByte('\n')
	}
}

// read is the content of a file, or says why there is none.
func (r *including) read(file string) string {
	content, err := r.client.Content(r.ctx, file, maxSource)
	refused, answered := refusal(err)
	switch {
	case !answered:
		r.unanswered = true
		return ""
	case refused != nil && refused.Code == protocol.NotFound && file == instructionsFile:
		return ""
	case err != nil:
		return notRead(file, err)
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		return notRead(file, errNotText)
	}
	return string(content)
}

var errNotText = errors.New("it is not UTF-8 text")

// included is the path that a line stands for; empty if it stands for itself.
func included(line string) string {
	to, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n \t"), "@")
	if !ok || strings.ContainsAny(to, " \t") {
		return ""
	}
	return to
}

// fenceAfter is the fence that ends the block of code that the line after this one is in; empty if it is in none. As in
// Markdown, a fence has three or more backquotes or tildes, and one that is at least as long ends the block.
func fenceAfter(fence, line string) string {
	line = strings.TrimSpace(line)
	info := strings.TrimLeft(line, line[:min(len(line), 1)])
	marks := line[:len(line)-len(info)]
	switch {
	case fence != "" && info == "" && strings.HasPrefix(marks, fence):
		return ""
	case fence != "":
		return fence
	case strings.HasPrefix(marks, "~~~"), strings.HasPrefix(marks, "```") && !strings.Contains(info, "`"):
		return marks
	}
	return ""
}

// skills is the index of the skills in the workspace.
func skills(ctx context.Context, c *client.Client) (index string, answered bool) {
	found, err := toolskills.InWorkspace(ctx, c)
	refused, answered := refusal(err)
	switch {
	case refused != nil:
		return notRead(toolskills.Directory, refused), true
	case err != nil:
		return "", answered
	}
	index = skill.Index(skill.OfWorkspace, found.Skills, found.More)
	for _, unread := range found.Unread {
		index += notRead(unread.Dir, unread.Err)
	}
	return index, true
}

// notRead says why something was not read.
func notRead(file string, err error) string {
	return fmt.Sprintf("[%s was not read: %s]\n", printable.Line(file), printable.Line(err.Error()))
}
