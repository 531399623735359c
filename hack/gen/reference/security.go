// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"parley.dev/parley/hack/gen/markdown"
)

// subjects of claims, in the order of the page.
var subjects = []string{
	"a hostile workspace", "a hostile model", "a tool that asks people", "a model in mode Plan or Explore",
	"a hostile MCP server", "a model that works in the cluster", "a hostile sub-chat", "a search of a provider",
	"a hostile skill or AGENTS.md", "an author of ChatModelConfigs", "a workload identity", "an author of messages",
	"a reader of a shared chat",
	"a client of OpenAI's protocols", "the page", "a client of the gateway",
}

// claim is a statement about security that a test shows. The comment of the test has it as
//
//	Security (SUBJECT): CLAIM. Also TestA, TestB of PACKAGE; TestC of PACKAGE.
type claim struct {
	subject, text, tests string
}

var (
	claims    = regexp.MustCompile(`^Security \(([^)]+)\): (.*?)\.(?: Also (.*)\.)?$`)
	testNames = regexp.MustCompile(`\b(?:Test|Fuzz)\w+`)
	packages  = regexp.MustCompile(` of ([\w/]+)`)
)

// Security renders the page of the claims about security, from the comments of the tests that show them.
func Security() ([]byte, error) {
	all, tests, err := readClaims()
	if err == nil {
		err = checkClaims(all, tests)
	}
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, generated, "comments of tests", "What tests show about security")
	b.WriteString("\n[Security](../explanation/security.md) explains roles, boundaries and what is not guaranteed.\n")
	for _, subject := range subjects {
		var rows [][]string
		for _, word := range []string{"can", "cannot"} {
			for _, c := range all {
				if c.subject == subject && strings.Trim(strings.Fields(c.text)[0], ",") == word {
					rows = append(rows, []string{c.text, c.tests})
				}
			}
		}
		if len(rows) == 0 {
			return nil, fmt.Errorf("no test shows something about %s", subject)
		}
		fmt.Fprintf(&b, "\n## %s%s\n", strings.ToUpper(subject[:1]), subject[1:])
		markdown.Table(&b, []string{"it", "shown by"}, rows)
	}
	return b.Bytes(), nil
}

// checkClaims fails unless each claim has a known subject and names existing tests.
func checkClaims(all []claim, tests map[string]bool) error {
	for _, c := range all {
		if !slices.Contains(subjects, c.subject) || !strings.HasPrefix(c.text, "can") {
			return fmt.Errorf("%s: the subject is unknown, or the claim begins with neither can nor cannot", c.tests)
		}
		for group := range strings.SplitSeq(c.tests, "; ") {
			names, dir, _ := strings.Cut(strings.TrimSuffix(group, "`"), " of `")
			for _, name := range testNames.FindAllString(names, -1) {
				if !tests[dir+"."+name] {
					return fmt.Errorf("%s has no test %s", dir, name)
				}
			}
		}
	}
	return nil
}

// readClaims reads the claims of all tests, and the names of these.
func readClaims() (all []claim, tests map[string]bool, err error) {
	tests = map[string]bool{}
	read := func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading a test: %w", err)
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !testNames.MatchString(f.Name.Name) {
				continue
			}
			tests[filepath.Dir(path)+"."+f.Name.Name] = true
			all = append(all, claimsOf(f, filepath.Dir(path))...)
		}
		return nil
	}
	for _, dir := range []string{"cmd", "controllers", "internal", "test"} {
		if err := filepath.WalkDir(dir, read); err != nil {
			return nil, nil, err
		}
	}
	return all, tests, nil
}

// claimsOf are the claims in the comment of a test. Each is a paragraph.
func claimsOf(test *ast.FuncDecl, dir string) (all []claim) {
	for paragraph := range strings.SplitSeq(test.Doc.Text(), "\n\n") {
		found := claims.FindStringSubmatch(strings.Join(strings.Fields(paragraph), " "))
		if found == nil {
			continue
		}
		shown := "`" + test.Name.Name + "` of `" + dir + "`"
		if found[3] != "" {
			shown += "; " + packages.ReplaceAllString(testNames.ReplaceAllString(found[3], "`$0`"), " of `$1`")
		}
		all = append(all, claim{found[1], markdown.Prose(found[2]), shown})
	}
	return all
}
