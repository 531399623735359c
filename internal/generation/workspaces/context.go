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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/text/skill"
	toolskills "parley.dev/parley/internal/tools/skills"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	contextTimeout = 5 * time.Second
	maxContext     = v1beta1.MaxInstructionsBytes
	maxSource      = 256 << 10 // bytes of an included file
	maxIncludes    = 16

	instructionsFile = "AGENTS.md"
	indexFile        = "SKILLS.md"
	contextCut       = "\n\n[This is longer than 64 KiB; the rest was cut off.]\n"
)

// Context is the context of the workspace: its AGENTS.md with the included files, and an index of its skills. ok
// reports whether the workspace has answered in time.
func (w *Workspaces) Context(ctx context.Context, chat *v1beta1.Chat) (files []v1beta1.MessageFile, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, contextTimeout)
	defer cancel()
	c, err := w.Of(ctx, chat)
	if err != nil {
		return nil, false
	}
	return contextIn(ctx, c)
}

// IsContext reports whether Context returns a file of that name.
func IsContext(name string) bool { return name == instructionsFile || name == indexFile }

// contextIn reads the context of a workspace, and reports whether all requests were answered.
func contextIn(ctx context.Context, c *client.Client) (files []v1beta1.MessageFile, ok bool) {
	r := &reader{ctx: ctx, client: c, seen: map[string]bool{}}
	r.include(instructionsFile)
	index, answered := skills(ctx, c)
	for _, f := range []struct{ name, text string }{{instructionsFile, r.text.String()}, {indexFile, index}} {
		if strings.TrimSpace(f.text) != "" {
			files = append(files, asFile(f.name, f.text))
		}
	}
	return files, answered && !r.unanswered
}

// refusal is the agent's error, if it is one, which is an answer.
func refusal(err error) (refused *protocol.Error, answered bool) {
	refused, ok := errors.AsType[*protocol.Error](err)
	return refused, err == nil || ok
}

func asFile(name, text string) v1beta1.MessageFile {
	if kept := clip.Bytes(text, maxContext); kept != text {
		text = kept + contextCut
	}
	return v1beta1.MessageFile{Name: name, MediaType: "text/markdown",
		Data: base64.StdEncoding.EncodeToString([]byte(text))}
}

// reader reads instructions with their includes.
type reader struct {
	ctx        context.Context
	client     *client.Client
	seen       map[string]bool
	text       strings.Builder
	unanswered bool // after a request without an answer
}

// include adds a file once. A line "@PATH" outside of code blocks includes the text file at that path, relative to the
// file.
func (r *reader) include(file string) {
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

// read is the content of a file, or why it was not read.
func (r *reader) read(file string) string {
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

// included is the path that a line includes, if any.
func included(line string) string {
	to, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n \t"), "@")
	if !ok || strings.ContainsAny(to, " \t") {
		return ""
	}
	return to
}

// fenceAfter is the fence of the open code block after the line; empty if none is open. As in Markdown, a fence has
// three or more backquotes or tildes, and one that is at least as long ends the block.
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

func notRead(file string, err error) string {
	return fmt.Sprintf("[%s was not read: %s]\n", printable.Line(file), printable.Line(err.Error()))
}
