// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"parley.dev/parley/api/changes"
	"parley.dev/parley/internal/workspace/agent/durable"
	"parley.dev/parley/internal/workspace/agent/process"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// maxAnswer bounds what is read of a short answer of git, and maxIndex the index of a repository.
	maxAnswer, maxIndex = 1 << 20, 512 << 20
	// maxRemoteRefs is how many refs of remotes the base is looked for in, the newest first.
	maxRemoteRefs = 500
	// sha256 is a format of objects.
	sha256 = "sha256"
)

// git runs git for a repository.
type git struct {
	review *review
	path   string
	// tree is the directory of the files, absolute, and own the agent's Git directory for them.
	tree, own string
	// format of the objects, and the places of the objects, of the index and of what is ignored.
	format, objects, index, exclude string
}

// newGit prepares the agent's own Git directory.
func newGit(r *review, path string) (*git, error) {
	own, err := os.MkdirTemp(r.State, "review-")
	if err != nil {
		return nil, fmt.Errorf("making a temporary directory: %w", err)
	}
	return &git{review: r, path: path, tree: filepath.Join(r.Directory, path), own: own}, nil
}

func (g *git) close() { _ = os.RemoveAll(g.own) } // It is in the agent's own directory.

// command runs git with a Git directory. A path is one, and no pattern.
func (g *git) command(ctx context.Context, dir, input string, read func(io.Reader) error, args ...string) error {
	options := []string{"git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
		"-c", "core.quotePath=true", "-c", "core.excludesFile=" + g.exclude,
		"-c", "core.bigFileThreshold=" + strconv.Itoa(maxContent)}
	err := g.review.Run(ctx, &protocol.StartRequest{
		Argv: append(options, args...), Dir: g.tree,
		Env: []string{g.review.path(), "HOME=" + g.own, "XDG_CONFIG_HOME=" + g.own, "LC_ALL=C",
			"GIT_DIR=" + dir, "GIT_WORK_TREE=" + g.tree, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_CONFIG_COUNT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1",
			"GIT_ALLOW_PROTOCOL=none", "GIT_EXTERNAL_DIFF=",
			// Only this command knows no such paths.
			"GIT_LITERAL_PATHSPECS=" + strconv.FormatBool(args[0] != "check-ignore")},
	}, input, read)
	if err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	return nil
}

// ask returns what a command of the repository's own Git directory writes. It may only read commits and refs.
func (g *git) ask(ctx context.Context, args ...string) (string, error) {
	var out []byte
	err := g.command(ctx, filepath.Join(g.tree, gitDir), "", func(from io.Reader) (err error) {
		if out, err = io.ReadAll(io.LimitReader(from, maxAnswer)); err == nil {
			err = discard(from)
		}
		return err
	}, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// answer is that of ask; empty if git has failed, which is how it says no.
func (g *git) answer(ctx context.Context, args ...string) (string, error) {
	text, err := g.ask(ctx, args...)
	if failed, ok := errors.AsType[*process.ExitError](err); ok && failed.Code == 1 {
		return "", nil
	}
	return text, err
}

// examine finds out how the repository differs from its base.
func (g *git) examine(ctx context.Context, found *changes.Repository, others []string) error {
	if err := g.locate(ctx); err != nil {
		return err
	}
	if err := g.prepare(); err != nil {
		return err
	}
	if err := g.history(ctx, found); err != nil {
		return err
	}
	if err := g.noteIgnored(ctx, others); err != nil {
		return err
	}
	return g.files(ctx, found)
}

// locate asks git where the parts of the repository are.
func (g *git) locate(ctx context.Context) error {
	out, err := g.ask(ctx, "rev-parse", "--show-object-format", "--git-path", "objects", "--git-path", "index",
		"--git-path", "info/exclude")
	if err != nil {
		return err
	}
	lines := strings.Split(out, "\n")
	if len(lines) != 4 {
		return errors.New("git rev-parse: the answer is not understood")
	}
	for i := range lines[1:] {
		if !filepath.IsAbs(lines[i+1]) {
			lines[i+1] = filepath.Join(g.tree, lines[i+1])
		}
	}
	g.format, g.objects, g.index, g.exclude = lines[0], lines[1], lines[2], lines[3]
	return nil
}

// prepare fills the agent's own Git directory.
func (g *git) prepare() error {
	config := "[core]\n\trepositoryformatversion = 0\n"
	if g.format == sha256 {
		config = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
	}
	for name, content := range map[string]string{"HEAD": "ref: refs/heads/none\n", "config": config,
		"objects/info/alternates": g.objects + "\n", "refs/none": ""} {
		file := filepath.Join(g.own, name)
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil {
			err = os.WriteFile(file, []byte(content), 0o600)
		}
		if err != nil {
			return fmt.Errorf("making a Git directory: %w", err)
		}
	}
	shared, _ := filepath.Glob(filepath.Join(filepath.Dir(g.index), "sharedindex.*")) // The pattern is valid.
	for _, file := range append(shared, g.index) {
		if err := copyFile(file, filepath.Join(g.own, filepath.Base(file))); err != nil {
			return fmt.Errorf("copying the index: %w", err)
		}
	}
	return nil
}

// copyFile copies a file, if there is one, with its time: by that, git knows which entries of an index it must not
// trust.
func copyFile(from, to string) error {
	source, err := durable.OpenRegular(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // It was only read.
	info, err := source.Stat()
	if err == nil && info.Size() > maxIndex {
		err = errors.New("it is larger than 512 MiB")
	}
	if err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.LimitReader(source, maxIndex))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// noteIgnored notes which of the other repositories are in this one and ignored.
func (g *git) noteIgnored(ctx context.Context, others []string) error {
	var below []string
	for _, other := range others {
		if path, err := filepath.Rel(g.path, other); err == nil && filepath.IsLocal(path) {
			below = append(below, path)
		}
	}
	if len(below) == 0 {
		return nil
	}
	err := g.command(ctx, g.own, strings.Join(below, "\x00"), func(out io.Reader) error {
		text, err := io.ReadAll(out)
		for path := range strings.SplitSeq(string(text), "\x00") {
			g.review.ignored[filepath.Join(g.path, path)] = true
		}
		return err
	}, "check-ignore", "-z", "--stdin", "--no-index")
	if failed, ok := errors.AsType[*process.ExitError](err); ok && failed.Code == 1 { // None is ignored.
		return nil
	}
	return err
}
