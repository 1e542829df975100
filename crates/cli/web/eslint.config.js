// The linter finds mistakes; the types are checked by tsc, and the format by prettier.
const rules = {
  'array-callback-return': 'error',
  'consistent-return': 'error',
  eqeqeq: 'error',
  'no-dupe-keys': 'error',
  'no-eval': 'error',
  'no-fallthrough': 'error',
  'no-implicit-globals': 'error',
  'no-self-compare': 'error',
  'no-shadow': 'error',
  'no-unreachable': 'error',
  'no-unused-expressions': 'error',
  'no-use-before-define': ['error', { functions: false }],
  'no-var': 'error',
  'prefer-const': 'error',
};

// Names are hostile text: no part may build markup from strings, and the policy forbids it too.
const markup = ['innerHTML', 'outerHTML', 'insertAdjacentHTML'].map((property) => ({
  property,
  message: 'Use textContent or append: names are hostile text.',
}));

// An export is one script: all modules in one scope (crates/cli/src/lab/play/export.rs).
const oneScope = [
  { selector: 'ImportNamespaceSpecifier', message: 'Import by name.' },
  { selector: 'ExportDefaultDeclaration', message: 'Export by name.' },
];

export default [
  { ignores: ['node_modules/'] },
  { files: ['**/*.js'], rules },
  {
    files: ['src/**/*.js'],
    rules: {
      'no-restricted-properties': ['error', ...markup],
      'no-restricted-syntax': ['error', ...oneScope],
    },
  },
];
