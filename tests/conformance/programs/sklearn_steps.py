import sklearn.datasets
import sklearn.ensemble

inputs, targets = sklearn.datasets.make_classification(random_state=0)
print(sklearn.ensemble.RandomForestClassifier(10, n_jobs=2, random_state=0).fit(inputs, targets).score(inputs, targets))
