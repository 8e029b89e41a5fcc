import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import KFold


def main(path="houses.csv"):
    table = pd.read_csv(path)
    y = table.pop("price").to_numpy()
    x = table.select_dtypes("number").fillna(0).to_numpy()
    losses, predictions = [], np.zeros(len(y))
    total = 0.0
    for fold, (train, test) in enumerate(KFold(5, shuffle=True, random_state=0).split(x)):
        model = GradientBoostingRegressor()
        model.fit(x[train], y[train])
        predictions[test] = model.predict(x[test])
        loss = mean_absolute_error(y[test], predictions[test])
        total += loss
        losses.append(loss)
        print("fold", fold, loss)
    print(total / len(losses))


if __name__ == "__main__":
    main()
