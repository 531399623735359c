// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"strconv"
	"strings"
	"time"

	"parley.dev/parley/api/changes"
)

// history finds the branch, the base and the commits since.
func (g *git) history(ctx context.Context, found *changes.Repository) (err error) {
	if found.Branch, err = g.answer(ctx, "symbolic-ref", "-q", "--short", "HEAD"); err != nil {
		return err
	}
	head, err := g.answer(ctx, "rev-parse", "-q", "--verify", "HEAD")
	if err != nil {
		return err
	}
	if head == "" { // There is no commit yet.
		found.Base = g.emptyTree()
		return nil
	}
	if found.Branch != "" {
		found.Upstream, err = g.ask(ctx, "for-each-ref", "--format=%(upstream:short)", "refs/heads/"+found.Branch)
		if err != nil {
			return err
		}
	}
	since, err := g.base(ctx, found)
	if err != nil {
		return err
	}
	if found.Base == "" {
		found.Base = g.emptyTree()
	}
	return g.commits(ctx, found, since)
}

// base finds the base, and which commits are not new. The base is the newest commit of HEAD that a remote has, or that
// HEAD had before.
func (g *git) base(ctx context.Context, found *changes.Repository) (old []string, err error) {
	remotes, err := g.ask(ctx, "for-each-ref", "--count="+strconv.Itoa(maxRemoteRefs), "--sort=-committerdate",
		"--format=%(objectname)", "refs/remotes")
	if err != nil {
		return nil, err
	}
	if remotes != "" {
		found.Base, err = g.answer(ctx, append([]string{"merge-base", "HEAD"}, strings.Fields(remotes)...)...)
		return []string{"--not", "--remotes"}, err
	}
	if found.Base, err = g.baseByTime(ctx); found.Base != "" {
		old = []string{"^" + found.Base}
	}
	return old, err
}

// emptyTree is the id of the tree without entries.
func (g *git) emptyTree() string {
	if g.format == sha256 {
		return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}

// baseByTime is the commit that was HEAD when the workspace got its chat. That of a younger repository is its first
// HEAD, unless the first commit was made there: then it is empty.
func (g *git) baseByTime(ctx context.Context) (base string, err error) {
	out, err := g.ask(ctx, "log", "-g", "--no-show-signature", "--date=unix", "--format=%H %gd %gs", "HEAD", "--")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		id, selector, _ := strings.Cut(strings.TrimSpace(line), " ")
		selector, action, _ := strings.Cut(selector, " ")
		_, at, _ := strings.Cut(selector, "@{")
		seconds, _ := strconv.ParseInt(strings.TrimSuffix(at, "}"), 10, 64) // 0: it was before.
		if base = id; time.Unix(seconds, 0).Before(g.review.Since.Truncate(time.Second)) {
			return base, nil
		}
		if strings.HasPrefix(action, "commit (initial)") {
			base = ""
		}
	}
	return base, nil
}

// commits lists the commits of HEAD without others.
func (g *git) commits(ctx context.Context, found *changes.Repository, without []string) error {
	out, err := g.ask(ctx, append([]string{"rev-list", "--max-count=" + strconv.Itoa(maxCommits+1),
		"--format=%h %s", "HEAD"}, without...)...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		id, subject, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case id == "commit": // It precedes each.
		case len(found.Commits) == maxCommits:
			found.MoreCommits = true
		default:
			found.Commits = append(found.Commits, changes.Commit{ID: id, Subject: subject})
		}
	}
	return nil
}
