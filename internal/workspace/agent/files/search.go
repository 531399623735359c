// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"context"
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// searchTime bounds a search.
	searchTime = 10 * time.Second
	// defaultMatches and maxMatches are how many a search returns, maxContext how many lines it shows around them.
	defaultMatches, maxMatches, maxContext = 100, 1000, 10
	// foundBytes bounds the text that a search returns.
	foundBytes = 1 << 20
	// maxPattern bounds a glob and a regular expression.
	maxPattern = 1 << 10
	// maxBraces and maxCommas bound the alternatives of a glob, which multiply.
	maxBraces, maxCommas = 3, 30
)

// errEnough ends a search that has found what it may return.
var errEnough = errors.New("there are more matches")

// Search looks for files by name, and in them by content. Links are found, and not followed.
func (f *Files) Search(ctx context.Context, r *protocol.SearchRequest) (*protocol.SearchResponse, error) {
	s, err := f.newSearch(r)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, f.searchTime)
	defer cancel()
	err = s.run(within)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if errors.Is(err, errEnough) || errors.Is(err, context.DeadlineExceeded) {
		s.found.Truncated, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	return &s.found, nil
}

// search is a search that is going on.
type search struct {
	dir   *directory
	start place
	// glob that paths relative to the start must match, and the directory that all of these are in.
	glob, globDir string
	content       *contentSearch
	context       int
	hidden        bool
	limit         int
	left          int
	found         protocol.SearchResponse
}

func (f *Files) newSearch(r *protocol.SearchRequest) (s *search, err error) {
	if r.Context < 0 || r.Limit < 0 || len(r.Glob) > maxPattern || len(r.Pattern) > maxPattern {
		return nil, refuse(protocol.BadRequest,
			"context and limit must not be negative, and glob and pattern have at most %d bytes.", maxPattern)
	}
	s = &search{dir: f.dir, context: min(r.Context, maxContext), hidden: r.Hidden,
		limit: min(cmp.Or(r.Limit, defaultMatches), maxMatches), left: foundBytes,
		found: protocol.SearchResponse{Matches: []protocol.Match{}}}
	if s.glob, err = globOf(r.Glob); err != nil {
		return nil, err
	}
	s.globDir, _ = doublestar.SplitPattern(s.glob)
	if s.content, err = newContentSearch(r.Pattern, r.IgnoreCase); err != nil {
		return nil, err
	}
	if s.start, err = f.dir.resolve(cmp.Or(r.Path, ".")); err != nil {
		return nil, err
	}
	if slices.Contains(strings.Split(s.start.path, "/"), gitDir) {
		return nil, refuse(protocol.BadRequest, "%q is Git's own and is not searched. Use execute with git.", r.Path)
	}
	return s, nil
}

// globOf checks a glob.
func globOf(glob string) (string, error) {
	if glob == "" {
		return "**", nil
	}
	glob = strings.TrimPrefix(glob, "./")
	if path.IsAbs(glob) || slices.Contains(strings.Split(glob, "/"), "..") {
		return "", refuse(protocol.BadRequest, "The glob %q must be relative to the path, and not lead out of it.", glob)
	}
	if strings.Count(glob, "{") > maxBraces || strings.Count(glob, ",") > maxCommas {
		return "", refuse(protocol.BadRequest, "The glob %q has more than %d braces or %d alternatives.", glob, maxBraces,
			maxCommas)
	}
	if !doublestar.ValidatePattern(glob) {
		return "", refuse(protocol.BadRequest, "The glob %q is not valid: ** matches directories, * and ? characters, "+
			"[a-z] one of several, {a,b} one of several texts.", glob)
	}
	return glob, nil
}

// newContentSearch compiles a pattern; nil: names alone are looked for.
func newContentSearch(pattern string, ignoreCase bool) (*contentSearch, error) {
	if pattern == "" {
		return nil, nil
	}
	expression := pattern
	if ignoreCase {
		expression = "(?i:" + pattern + ")"
	}
	re, err := regexp.Compile(expression)
	if err == nil {
		_, err = regexp.Compile(pattern) // One that closes the group is none.
	}
	if err != nil {
		return nil, refuse(protocol.BadRequest, "The pattern %q is no regular expression of the syntax RE2: %v.", pattern,
			err)
	}
	prefix, _ := re.LiteralPrefix()
	return &contentSearch{re: re, prefix: []byte(prefix)}, nil
}

// run searches the start, whatever ignore files say of it.
func (s *search) run(ctx context.Context) error {
	switch {
	case s.start.info == nil:
		return refuse(protocol.NotFound, "There is no file or directory %q.", s.start.asked)
	case s.start.info.IsDir():
		w := &tree{search: s}
		return w.walk(ctx, s.start.path, s.ignoredAbove(), 0)
	case !s.start.info.Mode().IsRegular():
		return notRegular(s.start.asked, s.start.info.Mode())
	case !doublestar.MatchUnvalidated(s.glob, path.Base(s.start.path)):
		return nil
	}
	return s.file(ctx, s.start.path)
}

// ignoredAbove is what the ignore files above the start say.
func (s *search) ignoredAbove() ignoring {
	var g ignoring
	if s.hidden || s.start.path == "." {
		return g
	}
	g = g.with(s.dir, ".")
	for i, c := range s.start.path {
		if c == '/' {
			g = g.with(s.dir, s.start.path[:i])
		}
	}
	return g
}

// file takes a file whose name matches, or what matches in it.
func (s *search) file(ctx context.Context, name string) error {
	if s.content == nil {
		return s.add(protocol.Match{Path: name})
	}
	return s.in(ctx, name)
}

func (s *search) add(m protocol.Match) error {
	length := len(m.Path) + len(m.Text)
	for _, line := range slices.Concat(m.Before, m.After) {
		length += len(line)
	}
	if len(s.found.Matches) == s.limit || length > s.left {
		return errEnough
	}
	s.left -= length
	s.found.Matches = append(s.found.Matches, m)
	return nil
}
