// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// searchTime bounds a search.
	searchTime = 10 * time.Second
	// defaultMatches and maxMatches are how many matches a search returns, maxContext how many lines around each.
	defaultMatches, maxMatches, maxContext = 100, 1000, 10
	// foundBytes bounds the text that a search returns.
	foundBytes = 1 << 20
	// maxPattern bounds a glob and a regular expression.
	maxPattern = 1 << 10
	// maxBraces and maxCommas bound the alternatives of a glob, which multiply.
	maxBraces, maxCommas = 3, 30
)

// errEnough ends a search at its limit.
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

// search is one search.
type search struct {
	dir   *directory
	start place
	// glob that paths relative to the start must match, and the directory that all such paths are in.
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

// newContentSearch compiles a pattern; nil: the search is for names only.
func newContentSearch(pattern string, ignoreCase bool) (*contentSearch, error) {
	if pattern == "" {
		return nil, nil
	}
	re, err := regexp.Compile(pattern)
	if err == nil && ignoreCase {
		re, err = regexp.Compile("(?i:" + pattern + ")")
	}
	if err != nil {
		return nil, refuse(protocol.BadRequest, "The pattern %q is no regular expression of the syntax RE2: %v.", pattern,
			err)
	}
	prefix, _ := re.LiteralPrefix()
	return &contentSearch{re: re, prefix: []byte(prefix)}, nil
}

// run searches the start, even if it is ignored.
func (s *search) run(ctx context.Context) error {
	switch {
	case s.start.info == nil:
		return refuse(protocol.NotFound, "There is no file or directory %q.", s.start.asked)
	case s.start.info.IsDir():
		return s.walk(ctx, s.start.path, s.ignoredAbove(), 0)
	case !s.start.info.Mode().IsRegular():
		return notRegular(s.start.asked, s.start.info.Mode())
	case !doublestar.MatchUnvalidated(s.glob, path.Base(s.start.path)):
		return nil
	}
	return s.file(ctx, s.start.path)
}

// ignoredAbove are the ignore files above the start.
func (s *search) ignoredAbove() ignoreLines {
	var g ignoreLines
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

// file adds a file, or the matching lines of it.
func (s *search) file(ctx context.Context, name string) error {
	if s.content == nil {
		return s.add(protocol.Match{Path: name})
	}
	text, ok := s.read(name)
	if !ok || len(text) > protocol.MaxFileBytes || bytes.IndexByte(text[:min(len(text), sniffed)], 0) >= 0 {
		s.found.Skipped++
		return nil
	}
	return s.lines(ctx, name, text)
}

// read reads at most one byte more than the limit of a file; false: it is too large or unreadable. The result is valid
// until the next call.
func (s *search) read(name string) ([]byte, bool) {
	file, info, err := s.dir.openRegular(name)
	if err != nil {
		return nil, false
	}
	defer closeRead(file)
	if info.Size() > protocol.MaxFileBytes {
		return nil, false
	}
	buffer := &s.content.buffer
	buffer.Reset()
	_, err = io.Copy(buffer, io.LimitReader(file, protocol.MaxFileBytes+1))
	return buffer.Bytes(), err == nil
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

const (
	// shownMatch is how much of a line with a match is shown, and beforeMatch how much of it before the match.
	shownMatch, beforeMatch = 500, 100
	// linesAtOnce are searched between two checks of the context.
	linesAtOnce = 1024
)

// contentSearch finds lines that match.
type contentSearch struct {
	re *regexp.Regexp
	// prefix of every match.
	prefix []byte
	buffer bytes.Buffer
}

// lines adds the lines of a text that match.
func (s *search) lines(ctx context.Context, name string, text []byte) error {
	number, counted := int64(1), 0
	for from, looked := 0, 1; from < len(text); looked++ {
		if looked%linesAtOnce == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		start, end, ok := s.content.candidate(text, from)
		if !ok {
			return nil
		}
		if at := s.content.re.FindIndex(lineOf(text, start)); at != nil {
			number += int64(bytes.Count(text[counted:start], []byte{'\n'}))
			counted = start
			if err := s.add(s.match(name, number, text, start, at[0])); err != nil {
				return err
			}
		}
		from = end
	}
	return nil
}

// candidate is the next line that may match, from an offset on at which a line begins: its first byte, and the first
// one after it.
func (c *contentSearch) candidate(text []byte, from int) (start, end int, ok bool) {
	at := bytes.Index(text[from:], c.prefix)
	if at < 0 {
		return 0, 0, false
	}
	start = from + bytes.LastIndexByte(text[from:from+at], '\n') + 1
	return start, nextLine(text, from+at), true
}

// nextLine is the beginning of the line after an offset.
func nextLine(text []byte, from int) int {
	if at := bytes.IndexByte(text[from:], '\n'); at >= 0 {
		return from + at + 1
	}
	return len(text)
}

// lineOf is the line that begins at an offset, without its ending.
func lineOf(text []byte, start int) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(text[start:nextLine(text, start)], []byte{'\n'}), []byte{'\r'})
}

// match is the line that begins at an offset, with those around it.
func (s *search) match(name string, number int64, text []byte, start, at int) protocol.Match {
	m := protocol.Match{Path: name, Line: number, Text: shown(lineOf(text, start), at)}
	for before := start; before > 0 && len(m.Before) < s.context; {
		before = bytes.LastIndexByte(text[:before-1], '\n') + 1
		m.Before = append([]string{shown(lineOf(text, before), 0)}, m.Before...)
	}
	for after := nextLine(text, start); after < len(text) && len(m.After) < s.context; after = nextLine(text, after) {
		m.After = append(m.After, shown(lineOf(text, after), 0))
	}
	return m
}

// shown cuts a long line to the part around an offset.
func shown(line []byte, at int) string {
	begins, ends := "", ""
	if len(line) > shownMatch && at > beforeMatch {
		line, begins = line[min(at-beforeMatch, len(line)-shownMatch):], "…"
		line = bytes.TrimLeftFunc(line, func(r rune) bool { return r == '\ufffd' })
	}
	if len(line) > shownMatch {
		line, ends = []byte(clip.Bytes(string(line[:shownMatch+1]), shownMatch)), "…"
	}
	return begins + strings.ToValidUTF8(string(line), "\ufffd") + ends
}
